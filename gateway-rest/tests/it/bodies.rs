//! JSON bodies and the messages that they become.

use serde_json::{Value, json};

use crate::library::{get, send, send_with};

async fn echo(body: &str) -> Value {
    let reply = send("POST", "/v1/echo", body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

#[tokio::test]
async fn a_field_may_be_the_body() {
    let reply = send("POST", "/v1/books", r#"{"title": "T", "pages": 3}"#).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.json()["book"]["pages"], 3);
    let reply = send("PUT", "/v1/books/7/tags", r#"["a", "b"]"#).await;
    assert_eq!(reply.json(), json!({"id": "7", "tags": ["a", "b"]}));
}

#[tokio::test]
async fn the_request_may_be_the_body() {
    let body = r#"{"reader": "Ann", "time": "90s"}"#;
    let reply = send("POST", "/v1/books/7:lend", body).await;
    assert_eq!(reply.json()["reader"], "Ann");
    assert_eq!(
        (&reply.json()["book"]["id"], &reply.json()["book"]["pages"]),
        (&json!("7"), &json!(90))
    );
    let reply = send("POST", "/v1/books/7:lend", r#"{"id": "8", "reader": "Ann"}"#).await;
    assert_eq!(reply.problems(), [("id".into(), "is set by the path; leave it out".into())]);
}

#[tokio::test]
async fn an_empty_body_is_an_empty_object() {
    for body in ["", " \n", "{}"] {
        assert_eq!(send("POST", "/v1/books", body).await.fields(), ["title"], "{body:?}");
        assert_eq!(send("POST", "/v1/books/7:lend", body).await.status, 200, "{body:?}");
    }
    assert_eq!(send("PUT", "/v1/books/7/tags", "").await.json()["tags"], json!([]));
}

#[tokio::test]
async fn a_method_without_body_takes_none() {
    assert_eq!(send("DELETE", "/v1/books/7", "{}").await.status, 204);
    let reply = send("DELETE", "/v1/books/7", r#"{"id": "8"}"#).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.fields(), [""]);
}

#[tokio::test]
async fn the_keys_of_a_patch_become_its_mask() {
    let body = r#"{"subject": null, "title": "T", "metadata": {"a": 1}}"#;
    let reply = send("PATCH", "/v1/books/7", body).await;
    let book = &reply.json()["book"];
    assert_eq!(book["tags"], json!(["title", "subject", "metadata"]));
    assert_eq!((&book["id"], &book["subject"]), (&json!("7"), &Value::Null));
    let nothing = send("PATCH", "/v1/books/7", "{}").await;
    assert_eq!(nothing.json()["book"]["tags"], json!([]));
}

/// A caller who sends an empty list may mean to forbid everything.
#[tokio::test]
async fn a_list_that_bounds_is_never_empty() {
    let unbounded = send("POST", "/v1/books", r#"{"title": "T"}"#).await.json()["book"].clone();
    assert_eq!((&unbounded["readers"], &unbounded["tags"]), (&Value::Null, &json!([])));
    for (body, place) in [
        (r#"{"title": "T", "readers": []}"#, "readers"),
        ("{\"title\": \"T\", \"readers\": [ \n\t ]}", "readers"),
        (r#"{"title": "T", "parts": [{}, {"readers": []}]}"#, "parts[1].readers"),
    ] {
        for (method, path) in [("POST", "/v1/books"), ("PATCH", "/v1/books/7")] {
            let refused = send(method, path, body).await;
            let (field, problem) = refused.problems().remove(0);
            assert_eq!((refused.status.as_u16(), field.as_str()), (400, place), "{method} {body}");
            assert!(problem.contains("leave it out for no bound"), "{problem}");
        }
    }
    let bound = send("POST", "/v1/books", r#"{"title": "T", "readers": ["Ann"]}"#).await;
    assert_eq!(bound.json()["book"]["readers"], json!(["Ann"]));
    assert_eq!(send("POST", "/v1/books", r#"{"title": "T", "readers": null}"#).await.status, 201);
}

#[tokio::test]
async fn null_takes_a_bound_away_by_a_mask_of_its_own() {
    let masks = async |body: &str| {
        let book = send("PATCH", "/v1/books/7", body).await.json()["book"].clone();
        (book["tags"].clone(), book["contact"].clone())
    };
    let of = masks(r#"{"readers": null, "title": "T", "subject": null, "tags": []}"#).await;
    assert_eq!(of, (json!(["title", "subject", "tags"]), json!("readers")));
    assert_eq!(masks(r#"{"readers": null}"#).await, (json!([]), json!("readers")));
    assert_eq!(masks(r#"{"readers": ["Ann"]}"#).await, (json!(["readers"]), json!("")));
    let both = send("PATCH", "/v1/books/7", r#"{"readers": null, "readers": ["Ann"]}"#).await;
    assert_eq!(both.fields(), ["readers"]);
    for query in ["clear=readers", "update_mask=readers"] {
        let refused = send("PATCH", &format!("/v1/books/7?{query}"), "{}").await;
        assert_eq!(refused.status, 400, "{query}");
    }
}

#[tokio::test]
async fn absent_members_are_null_or_empty_or_the_default() {
    let everything = echo("{}").await;
    for name in ["inner", "at", "object", "anything", "maybe", "left", "right", "genre", "rank"] {
        assert_eq!(everything[name], Value::Null, "{name}");
    }
    assert_eq!((&everything["texts"], &everything["words"]), (&json!([]), &json!({})));
    assert_eq!((&everything["text"], &everything["int"]), (&json!(""), &json!(0)));
    assert_eq!(everything["flag"], json!(false));
}

#[tokio::test]
async fn members_come_in_the_order_of_the_proto() {
    let body = get("/v1/books/7").await.body;
    let places = ["id", "title", "binding", "owner", "created_at", "parts"]
        .map(|name| body.find(&format!("\"{name}\":")).unwrap());
    assert!(places.is_sorted(), "{body}");
}

#[tokio::test]
async fn every_kind_comes_back() {
    let body = json!({
        "flag": true, "int": -2_147_483_648, "signed": -1, "signed_fixed": -5,
        "unsigned": 4_294_967_295_u32, "unsigned_fixed": 7, "single": 0.1, "double": 1e300,
        "text": "\" \\ / \u{8}\u{c}\n\r\t \u{1} ä €  𝄞", "blob": "AAECAw==", "genre": "crime",
        "inner": {"int": 1, "inner": {"text": "deep"}}, "at": "2026-01-31T09:30:00.123456Z",
        "time": "-1.500000s", "mask": "a,b.c",
        "object": {"a": null, "b": [1, -0.5, true, {"c": {}}], "ä": ""},
        "anything": [null, {"x": [1]}], "list": [1, "two", null], "nickname": "", "rank": 0,
        "nothing": {}, "maybe": "", "maybe_int": 0, "right": 0, "texts": ["", "x"],
        "ints": [1, -1], "doubles": [0, 0.25], "genres": ["crime", "science_fiction"],
        "pages": [{"name": "p"}, {"name": ""}], "words": {"": "e", "k": "v"},
        "numbered": {"-1": {"name": "n"}, "7": {"name": ""}}, "flags": {"true": [1], "false": null},
        "times": ["1970-01-01T00:00:00Z"], "maybe_genre": "crime",
    });
    let back = echo(&body.to_string()).await;
    for (name, value) in body.as_object().unwrap() {
        if name != "inner" {
            assert_eq!(&back[name], value, "{name}");
        }
    }
    assert_eq!(back["inner"]["inner"]["text"], "deep");
    assert_eq!(back["left"], Value::Null);
}

#[tokio::test]
async fn free_objects_are_sorted_and_keep_integers() {
    let reply =
        send("POST", "/v1/echo", r#"{"object": {"b": 1.0, "a": 10, "aa": 9007199254740991}}"#);
    let body = reply.await.body;
    assert!(body.contains(r#""object":{"a":10,"aa":9007199254740991,"b":1}"#), "{body}");
}

#[tokio::test]
async fn escapes_and_spaces_are_read() {
    let body = "\t{ \"text\" : \"\\u00e4\\ud834\\udd1e\\/\\n\" , \"ints\" : [ 1 , 2 ] }\r\n";
    let back = echo(body).await;
    assert_eq!(back["text"], "ä𝄞/\n");
    assert_eq!(back["ints"], json!([1, 2]));
    assert_eq!(echo(r#"{"int": 5.0, "unsigned": 1e3}"#).await["unsigned"], 1000);
}

#[tokio::test]
async fn the_content_type_must_be_json() {
    let card = ("authorization", "Bearer card");
    for right in
        ["application/json", "Application/JSON; charset=utf-8", "application/vnd.library+json"]
    {
        let reply = send_with("PATCH", "/v1/books/7", &[card, ("content-type", right)], "{}").await;
        assert_eq!(reply.status, 200, "{right}");
    }
    for wrong in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "json",
        "",
        // A patch in another form than the record's own members.
        "application/merge-patch+json",
        "application/json-patch+json; charset=utf-8",
    ] {
        let reply = send_with("PATCH", "/v1/books/7", &[card, ("content-type", wrong)], "{}").await;
        assert_eq!(reply.status, 415, "{wrong}");
        assert_eq!(reply.reason(), "unsupported_media_type");
    }
    assert_eq!(send_with("PATCH", "/v1/books/7", &[card], "{}").await.status, 415);
    let none = send_with("PATCH", "/v1/books/7", &[card], "").await;
    assert_eq!(none.status, 400, "a patch needs a body, even an empty object: {{}}");
}

#[tokio::test]
async fn the_body_has_a_limit() {
    let reply =
        send("POST", "/v1/books", &format!("{{\"title\": \"{}\"}}", "x".repeat(5000))).await;
    assert_eq!((reply.status.as_u16(), reply.reason().as_str()), (413, "too_large"));
    // Without a length, the limit applies while the body is read.
    let chunks = tokio_stream::iter((0..5).map(|_| Ok::<_, std::io::Error>("x".repeat(1000))));
    let body = axum::body::Body::from_stream(chunks);
    let reply = send_with("POST", "/v1/books", &[("authorization", "Bearer card")], body).await;
    assert_eq!(reply.status, 413);
    let broken = tokio_stream::iter([Err::<String, _>(std::io::Error::other("gone"))]);
    let body = axum::body::Body::from_stream(broken);
    let reply = send_with("POST", "/v1/books", &[("authorization", "Bearer card")], body).await;
    assert_eq!(reply.status, 400);
}
