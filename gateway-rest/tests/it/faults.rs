//! Errors in a body: all are reported at once, each with its path.

use crate::library::{Reply, send, send_with};

async fn echo(body: impl AsRef<str>) -> Reply {
    let reply = send("POST", "/v1/echo", body.as_ref()).await;
    assert_eq!(reply.status, 400, "{}", reply.body);
    reply
}

#[tokio::test]
async fn every_fault_is_reported_at_once() {
    let reply = echo(
        r#"{
            "flag": "yes", "int": 2147483648, "unsigned": -1, "double": 1e999, "text": 5,
            "genre": "poetry", "blob": "?", "at": "2026-13-01T00:00:00Z", "time": "1h",
            "inner": {"texts": ["a", 7], "stranger": {"deep": [1, {"x": 2}]}}, "texts": "a",
            "pages": [{"name": "ok"}, {"name": null, "size": 1}, 3], "list": {}, "object": [],
            "words": {"a": 1}, "numbered": {"x": {}}, "ints": [1, 2.5, null], "single": "NaN",
            "nickname": 1, "left": "l", "right": 1, "int": 3, "left": "again"
        }"#,
    )
    .await;
    let problems = reply.problems();
    let expected = [
        ("flag", "must be true or false, not a string"),
        ("int", "must be an integer from -2147483648 to 2147483647"),
        ("unsigned", "must be an integer from 0 to 4294967295"),
        ("double", "is out of range for a number"),
        ("text", "must be a string, not a number"),
        ("genre", "must be one of `crime`, `science_fiction`"),
        ("blob", "must be base64"),
        ("at", "must be a time of RFC 3339, such as `2026-01-31T09:30:00Z`"),
        ("time", "must be seconds such as `1.5s`"),
        ("inner.texts[1]", "must be a string, not a number"),
        ("inner.stranger", "is an unknown field"),
        ("texts", "must be an array, not a string"),
        ("pages[1].size", "is an unknown field"),
        ("pages[2]", "must be an object, not a number"),
        ("list", "must be an array, not an object"),
        ("object", "must be an object, not an array"),
        ("words.a", "must be a string, not a number"),
        ("numbered.x", "is not a valid key: it must be an integer from -2147483648 to 2147483647"),
        ("ints[1]", "must be an integer from -2147483648 to 2147483647"),
        ("ints[2]", "must be an integer, not null"),
        ("single", "must be a number, not a string"),
        ("nickname", "must be a string, not a number"),
        ("right", "cannot be combined with `left`; give one of them"),
        ("int", "is given more than once"),
        ("left", "is given more than once"),
    ];
    let found: Vec<_> = problems.iter().map(|(f, p)| (f.as_str(), p.as_str())).collect();
    assert_eq!(found, expected);
    assert_eq!(reply.reason(), "invalid_request");
}

#[tokio::test]
async fn a_null_excludes_nothing() {
    let reply = send("POST", "/v1/echo", r#"{"left": null, "right": 1}"#).await;
    assert_eq!(reply.json()["right"], 1);
}

#[tokio::test]
async fn members_of_a_body_field_are_named_as_they_were_sent() {
    let reply = send("POST", "/v1/books", r#"{"title": 1, "parts": [{"pages": "x"}]}"#).await;
    assert_eq!(reply.fields(), ["title", "parts[0].pages"]);
    let reply = send("PATCH", "/v1/books/7", r#"{"title": "bad"}"#).await;
    assert_eq!(reply.problems(), [("title".into(), "is bad".into())]);
    assert_eq!(reply.json()["message"], "`title` is bad");
    assert_eq!(reply.json()["details"][0]["metadata"]["shelf"], "7");
}

#[tokio::test]
async fn malformed_json_is_located() {
    for (body, place, expected) in [
        ("{", 2, "a member's name in quotes"),
        ("{\"text\" 1}", 9, "`:`"),
        ("{\"text\": \"a\",}", 14, "a value after the comma"),
        ("{\"text\": 'a'}", 10, "a JSON value"),
        ("{\"int\": 01}", 10, "the end of the number"),
        ("{\"int\": 1.}", 11, "a digit"),
        ("{\"int\": +1}", 9, "a JSON value"),
        ("{\"int\": -}", 10, "a JSON value"),
        ("{\"double\": NaN}", 12, "a JSON value"),
        ("{\"double\": Infinity}", 12, "a JSON value"),
        ("{\"text\": \"\\x\"}", 12, "a valid escape"),
        ("{\"text\": \"\\ud800\"}", 17, "the other half of a surrogate pair"),
        ("{\"text\": \"\\udc00\"}", 17, "the first half of a surrogate pair"),
        ("{\"text\": \"\n\"}", 11, "no control character; escape it"),
        ("{\"text\": \"a", 12, "the string's closing quote"),
        ("{} {}", 4, "the end of the text"),
        ("{\"flag\": tru}", 10, "a JSON value"),
        ("{\"ints\": [1 2]}", 13, "`,` or `]`"),
        ("{\"stranger\": [1 2]}", 17, "`,` or `]`"),
        ("/* x */ {}", 1, "a JSON value"),
    ] {
        let reply = echo(body).await;
        let message = reply.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("column {place}:")), "{body}: {message}");
        assert!(message.ends_with(&format!("expected {expected}")), "{body}: {message}");
        assert_eq!(reply.reason(), "malformed_json", "{body}");
    }
    // It cannot be seen in the text.
    let reply = echo("\u{feff}{}").await;
    assert!(reply.body.contains("byte order mark"), "{}", reply.body);
    let reply = echo("{\n\"flag\": true,\n \"int\"}").await;
    assert!(reply.body.contains("line 3, column 7"), "{}", reply.body);
    let headers = [("authorization", "Bearer card"), ("content-type", "application/json")];
    let reply = send_with("POST", "/v1/echo", &headers, &b"{\"text\": \"\xff\"}"[..]).await;
    assert!(reply.body.contains("not UTF-8 at byte 10"), "{}", reply.body);
    for body in ["null", "[]", "1", "\"x\""] {
        assert_eq!(echo(body).await.fields(), [""], "{body}");
    }
}

#[tokio::test]
async fn nul_is_refused_everywhere() {
    let body = r#"{"text": "a\u0000", "object": {"b\u0000": 1, "c": ["\u0000"]}, "mask": "\u0000",
        "words": {"\u0000": "x"}}"#;
    let fields = echo(body).await.fields();
    assert_eq!(fields, ["text", "object.b\u{fffd}", "object.c[0]", "mask", "words.\u{fffd}"]);
}

#[tokio::test]
async fn nesting_has_a_limit() {
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"anything": {open}{close}}}"#)
    };
    // Nesting is counted from the free-form member, and from the body in all other cases.
    assert_eq!(send("POST", "/v1/echo", &nested(32)).await.status, 200);
    let reply = echo(nested(33)).await;
    assert!(reply.problems()[0].1.contains("deeper than 32"), "{}", reply.body);
    assert_eq!(reply.fields(), ["anything"]);
    let stranger = nested(32).replace("anything", "stranger");
    assert_eq!(echo(stranger).await.fields(), ["stranger", "stranger"]);
    let inner = "{\"inner\":".repeat(40) + &"}".repeat(40);
    assert_eq!(echo(inner).await.problems().len(), 1);
}

#[tokio::test]
async fn numbers_that_would_be_rounded_are_refused() {
    let body = r#"{"object": {"a": 9007199254740993, "b": [1e20, 0.1, 0.12345678901234567891],
        "c": 1e999, "d": 1e-999, "e": -9007199254740992}}"#;
    let problems = echo(body).await.problems();
    let fields: Vec<_> = problems.iter().map(|(field, _)| field.as_str()).collect();
    let refused = ["object.a", "object.b[0]", "object.b[2]", "object.c", "object.d", "object.e"];
    assert_eq!(fields, refused);
    for (field, problem) in problems {
        let digits = ["object.b[2]", "object.d"].contains(&field.as_str());
        let expected = if digits { "would be rounded: " } else { "is beyond 2^53-1, " };
        assert!(problem.starts_with(expected) && !problem.contains("string"), "{field} {problem}");
    }
    // The number of an invoice, not an amount: it may be sent as text.
    let reply = echo(r#"{"object": {"serial": 28857836529306024611912}}"#).await;
    let (field, problem) = reply.problems().remove(0);
    assert_eq!(field, "object.serial");
    assert!(problem.ends_with("; send an identifier as text"), "{problem}");
    let text = r#"{"object": {"serial": "28857836529306024611912"}}"#;
    assert_eq!(send("POST", "/v1/echo", text).await.status, 200);
}

#[tokio::test]
async fn duplicates_in_free_objects_are_refused_few_or_many() {
    let fields = echo(r#"{"object": {"a": 1, "b": {"c": 1, "\u0063": 2}, "a": 2}}"#).await.fields();
    assert_eq!(fields, ["object.b.c", "object.a"]);
    let many: Vec<_> = (0..100).map(|n| format!("\"k{n}\": 1")).collect();
    let body = format!(r#"{{"words": {{}}, "object": {{{}, "k7": 1}}}}"#, many.join(","));
    assert_eq!(echo(body).await.fields(), ["object.k7"]);
    assert_eq!(echo(r#"{"words": {"a": "", "a": ""}}"#).await.fields(), ["words.a"]);
}

#[tokio::test]
async fn a_flood_of_faults_is_cut_short() {
    let body = format!(r#"{{"texts": [{}]}}"#, vec!["1"; 1000].join(","));
    let problems = echo(body).await.problems();
    assert_eq!(problems.len(), 51);
    assert_eq!(problems[50], (String::new(), "and 950 more".to_owned()));
    // The size in bytes is also limited: long names and values are shortened, and many are only
    // counted.
    let names = (0..50).map(|n| format!("\"{n}{}\": 1", "\\u0001".repeat(12)));
    let body = format!("{{{}}}", names.collect::<Vec<_>>().join(","));
    let reply = echo(body).await;
    assert!(reply.body.len() < 16 << 10, "{}", reply.body.len());
    let reply = echo(format!(r#"{{"{}": 1}}"#, "é".repeat(1500))).await;
    assert_eq!(reply.fields()[0].chars().count(), 100);
    assert!(reply.body.len() < 1000, "{}", reply.body);
}
