//! The method that a path reaches, and the fields that its URL sets.

use serde_json::json;

use crate::library::{get, send, send_with};

#[tokio::test]
async fn a_variable_is_decoded_once() {
    let reply = get("/v1/books/a%2520b%2Fc%C3%A4").await;
    assert_eq!(reply.json()["book"]["id"], "a%20b/cä");
    assert_eq!(reply.json()["book"]["subject"], "/v1/books/a%2520b%2Fc%C3%A4");
    assert_eq!(get("/v1/books/%FF").await.problems(), [("id".into(), "is not UTF-8".into())]);
    let nul = get("/v1/books/a%00").await;
    assert_eq!(nul.problems(), [("id".into(), "may not contain U+0000".into())]);
    assert_eq!(get("/v1/b%6Foks/x").await.status, 200, "a literal may be encoded");
}

#[tokio::test]
async fn ids_may_hold_colons_and_only_known_verbs_are_split_off() {
    assert_eq!(get("/v1/books/svc:book:7").await.json()["book"]["id"], "svc:book:7");
    let lent = send("POST", "/v1/books/svc:book:7:lend", r#"{"reader": "Ann"}"#).await;
    assert_eq!(lent.json()["book"]["id"], "svc:book:7");
    assert_eq!(get("/v1/books/svc:lend").await.json()["book"]["id"], "svc:lend", "no GET verb");
    let encoded = send("POST", "/v1/books/x%3Alend", "{}").await;
    assert_eq!(encoded.status, 405, "an encoded colon is part of the id");
    assert_eq!(send("POST", "/v1/books/:lend", "{}").await.status, 405);
}

#[tokio::test]
async fn an_unknown_verb_is_named() {
    for path in ["/v1/books/svc:book:7:burn", "/v1/books:burn", "/v1/shelves/3/pages/p:burn"] {
        let reply = send("POST", path, "{}").await;
        assert_eq!((reply.status.as_u16(), reply.reason().as_str()), (404, "not_found"), "{path}");
        assert!(reply.body.contains("no verb `:burn`"), "{path}: {}", reply.body);
        assert!(!reply.body.contains("did you mean"), "{path}: {}", reply.body);
        let reply = send_with("POST", path, &[], "{}").await;
        assert_eq!(reply.status, 401, "{path}: the credential is checked first");
    }
    for (path, meant) in [
        ("/v1/books/svc:book:7:lnd", "POST /v1/books/{id}:lend?"),
        ("/v1/books:exprt", "GET /v1/books:export?"),
    ] {
        let reply = send("POST", path, "{}").await;
        let meant = format!("did you mean {meant}");
        assert!(reply.status == 404 && reply.body.contains(&meant), "{path}: {}", reply.body);
    }
    assert_eq!(send("POST", "/v1/books/svc:book:7", "{}").await.status, 405, "an id's end");
    assert_eq!(send("PUT", "/v1/books/7:lend", "{}").await.status, 405, "another method's");
}

#[tokio::test]
async fn literals_come_before_variables() {
    assert_eq!(get("/v1/books:export").await.header("content-type"), "application/x-ndjson");
    assert_eq!(get("/v1/titles").await.json(), json!(["A", "B"]));
}

#[tokio::test]
async fn additional_bindings_reach_the_same_method() {
    assert_eq!(get("/v1/catalogue/7/book").await.json()["book"]["id"], "7");
}

#[tokio::test]
async fn variables_may_cover_several_segments() {
    let file = get("/v1/files/a/b%20c/d%2Fe").await;
    assert_eq!(file.json(), json!({"path": "a/b c/d%2Fe"}), "an encoded slash stays encoded");
    assert_eq!(get("/v1/files").await.json(), json!({"path": ""}));
    let page = get("/v1/shelves/3/pages/p:1:read").await;
    assert_eq!(page.json(), json!({"page": {"name": "shelves/3/pages/p:1"}}));
    assert_eq!(get("/v1/shelves/3/pages/1").await.status, 404, "the verb is part of the path");
}

#[tokio::test]
async fn unknown_paths_are_not_found_before_anything_is_asked() {
    for path in ["/", "/v1", "/v1/", "/v1/books/", "/v1/books/a/b", "/v1//books", "/V1/books"] {
        let reply = send_with("GET", path, &[], "").await;
        assert_eq!((reply.status.as_u16(), reply.reason().as_str()), (404, "not_found"), "{path}");
    }
    assert_eq!(send_with("HEAD", "/nowhere", &[], "").await.body, "");
}

#[tokio::test]
async fn another_method_is_refused_with_what_is_allowed() {
    let reply = send("PUT", "/v1/books", "{}").await;
    assert_eq!((reply.status.as_u16(), reply.reason().as_str()), (405, "method_not_allowed"));
    assert_eq!(reply.header("allow"), "GET, HEAD, POST, PURGE");
    let reply = send_with("PUT", "/v1/books", &[], "").await;
    assert_eq!(reply.status, 401, "the credential is checked first");
    assert_eq!(send("PURGE", "/v1/books", "").await.body, r#"{"ok":true}"#);
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let (head, get) = (send("HEAD", "/v1/titles", "").await, get("/v1/titles").await);
    assert_eq!((head.status, head.body.as_str()), (get.status, ""));
    assert_eq!(head.header("content-length"), get.body.len().to_string());
    assert_eq!(send("HEAD", "/v1/books/missing", "").await.status, 404);
}

#[tokio::test]
async fn the_query_fills_fields() {
    let reply =
        get("/v1/books?filter.genre=science_fiction&filter.since=2026-01-31T10:30:00%2B01:00\
         &filter.subject=&tags=a+b&tags=c%2Bd&limit=5&count=true&filter.any=crime&filter.any=crime")
        .await;
    let seen: serde_json::Value =
        serde_json::from_str(reply.json()["next_page_token"].as_str().unwrap()).unwrap();
    let expected = json!({
        "filter": {
            "genre": "GENRE_SCIENCE_FICTION", "since": "2026-01-31T09:30:00+00:00", "subject": "",
            "any": ["GENRE_CRIME", "GENRE_CRIME"],
        },
        "tags": ["a b", "c+d"], "limit": 5, "count": true,
    });
    assert_eq!(seen, expected);
}

/// The host's clock shows 2026-01-31T09:30:00Z.
#[tokio::test]
async fn a_time_in_the_query_may_be_a_span_before_now() {
    let reply = get("/v1/ask/w?at=-36h").await;
    assert_eq!(reply.json()["at"], "2026-01-29T21:30:00Z");
    let reply = get("/v1/ask/w?at=-1w&time=-1.5s").await;
    assert_eq!(reply.status, 400);
    let details = reply.body;
    assert!(details.contains("`-90s`, `-15m`, `-1h` or `-7d`"), "{details}");
    assert!(!details.contains("`time`"), "a duration is not a time: {details}");
}

#[tokio::test]
async fn every_scalar_may_stand_in_the_query() {
    let reply =
        get("/v1/ask/w?flag=false&small=-7&count=4294967295&ratio=-1.5e3&blob=_-8&genre=crime\
         &at=2026-01-31T09:30:00.5Z&time=1.5s&nickname=N&numbers=1&numbers=-2&maybe=")
        .await;
    let expected = json!({
        "word": "w", "flag": false, "small": -7, "count": 4_294_967_295_u32, "ratio": -1500,
        "blob": "/+8=", "genre": "crime", "at": "2026-01-31T09:30:00.500000Z",
        "time": "1.500000s", "nickname": "N", "numbers": [1, -2], "maybe": "",
    });
    assert_eq!(reply.json(), expected);
}

#[tokio::test]
async fn wrong_parameters_are_named_all_at_once() {
    let reply =
        get("/v1/ask/w?flag=1&small=2147483648&count=-1&ratio=inf&blob=%3D%3D&genre=GENRE_CRIME\
         &at=yesterday&time=5&maybe=a&maybe=b&stranger=1&word=x&numbers=1.5&small=+3")
        .await;
    assert_eq!(reply.status, 400);
    let fields = [
        "flag", "small", "count", "ratio", "blob", "genre", "at", "time", "maybe", "stranger",
        "word", "numbers", "small",
    ];
    assert_eq!(reply.fields(), fields);
    assert_eq!(reply.problems()[5].1, "must be one of `crime`, `science_fiction`");
}

#[tokio::test]
async fn what_the_body_has_is_no_parameter() {
    let reply = send("PATCH", "/v1/books/7?force=true", "{}").await;
    assert_eq!(reply.json()["book"]["binding"], "forced");
    let reply = send("PATCH", "/v1/books/7?book.title=x&update_mask=title", "{}").await;
    assert_eq!(reply.fields(), ["book.title", "update_mask"]);
    let reply = send("POST", "/v1/books/7:lend?reader=x", "{}").await;
    assert_eq!(reply.fields(), ["reader"]);
    assert_eq!(get("/v1/books?filter=x").await.fields(), ["filter"]);
    assert_eq!(get("/v1/books?limit.x=1&filter.=1&=1").await.fields(), ["limit.x", "filter.", ""]);
}
