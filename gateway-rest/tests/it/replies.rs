//! The form of successes and refusals.

use serde_json::json;

use crate::library::{get, send, send_with};

const CARD: (&str, &str) = ("authorization", "Bearer card");
const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn bodies_have_the_form_of_the_option() {
    let enveloped = get("/v1/books/7").await;
    assert!(enveloped.body.starts_with(r#"{"ok":true,"book":{"id":"7","#), "{}", enveloped.body);
    assert_eq!(enveloped.header("content-type"), "application/json");
    assert_eq!(enveloped.header("cache-control"), "no-store");
    let beside = get("/v1/books").await;
    assert!(beside.body.starts_with(r#"{"ok":true,"books":[],"next_page_token":"#));
    let without_ok = get("/v1/catalogue/7/book").await;
    assert!(without_ok.body.starts_with(r#"{"book":{"id":"7","#), "{}", without_ok.body);
    let line = get("/v1/books:export").await;
    assert!(line.body.starts_with(r#"{"id":"#), "a stream's message: {}", line.body);
    assert_eq!(get("/v1/ask/w").await.json()["word"], "w", "the message itself");
    assert_eq!(get("/v1/titles").await.body, r#"["A","B"]"#, "a response_body");
    let gone = send("DELETE", "/v1/books/7", "").await;
    assert_eq!((gone.status.as_u16(), gone.body.as_str()), (204, ""));
    assert_eq!(gone.header("content-type"), "");
}

#[tokio::test]
async fn raw_bodies_are_as_they_are() {
    let cover = send_with("GET", "/v1/cover", &[], "").await;
    assert_eq!(cover.body, "<p>Library</p>");
    assert_eq!(cover.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(cover.header("cache-control"), "public, max-age=60");
    let schema = get("/v1/schema").await;
    assert_eq!(schema.body, r#"{"a":[1,0.5],"type":"object"}"#);
    assert_eq!(schema.header("content-type"), "application/json");
    let beside_ok = get("/v1/books:schema").await;
    assert_eq!(beside_ok.body, r#"{"ok":true,"schema":{"a":[1,0.5],"type":"object"}}"#);
}

#[tokio::test]
async fn a_new_record_has_a_place() {
    let reply = send("POST", "/v1/books", r#"{"title": "T"}"#).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.header("location"), "/v1/books/lib:b%201%2F%C3%A4");
    assert_eq!(reply.header("etag"), "\"1\"");
    assert_eq!(reply.header("x-private"), "", "metadata is not public");
    assert_eq!(reply.header("idempotency-replayed"), "");
    let headers = [CARD, JSON, ("idempotency-key", "k")];
    let reply = send_with("POST", "/v1/books", &headers, r#"{"title": "T"}"#).await;
    assert_eq!(reply.header("idempotency-replayed"), "true");
}

#[tokio::test]
async fn the_host_decides_before_the_body_is_read() {
    let reply = send_with("POST", "/v1/books", &[], "no JSON").await;
    assert_eq!(reply.status, 401);
    assert_eq!(reply.header("www-authenticate"), "Bearer");
    let reply = send_with("POST", "/v1/books", &[("authorization", "Bearer old")], "no JSON").await;
    assert_eq!((reply.status.as_u16(), reply.json()["code"].as_i64()), (403, Some(7)));
}

#[tokio::test]
async fn what_the_host_knows_reaches_the_handler() {
    let book = &get("/v1/books/7?").await.json()["book"];
    assert_eq!((&book["title"], &book["subject"]), (&json!("true"), &json!("/v1/books/7?")));
}

#[tokio::test]
async fn a_status_becomes_an_http_status() {
    for (id, status) in [("missing", 404), ("taken", 409), ("busy", 429), ("panic", 500)] {
        let reply = get(&format!("/v1/books/{id}")).await;
        assert_eq!(reply.status, status, "{id}");
        assert_eq!(reply.header("content-type"), "application/json");
    }
    assert_eq!(get("/v1/books/busy").await.header("retry-after"), "7");
    let fixed = get("/v1/books/fixed").await;
    assert_eq!((fixed.reason().as_str(), fixed.header("allow")), ("books_are_fixed", "GET"));
}

#[tokio::test]
async fn a_refusal_quotes_the_request_id() {
    let reply = send_with("GET", "/v1/books", &[("x-request-id", "r1")], "").await;
    assert_eq!(reply.json()["details"][0]["requestId"], "r1");
}
