//! Server streams over HTTP.

use serde_json::Value;

use crate::library::{get, send, send_with};

const EVENTS: [(&str, &str); 2] =
    [("authorization", "Bearer card"), ("accept", "text/html, text/event-stream;q=0.9")];

fn lines(body: &str) -> Vec<Value> {
    body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_stream_is_a_line_a_message() {
    let reply = get("/v1/books:export").await;
    assert_eq!(reply.header("content-type"), "application/x-ndjson");
    assert_eq!(reply.header("cache-control"), "no-store");
    assert_eq!(reply.header("ratelimit"), "\"books\";r=1");
    assert!(!reply.headers.contains_key("x-private"), "{:?}", reply.headers);
    let lines = lines(&reply.body);
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["title"], &lines[1]["title"]), (&"one".into(), &"two\n".into()));
}

#[tokio::test]
async fn server_sent_events_on_request() {
    let reply = send_with("GET", "/v1/books:export", &EVENTS, "").await;
    assert_eq!(reply.header("content-type"), "text/event-stream");
    assert_eq!(reply.header("ratelimit"), "\"books\";r=1");
    let events: Vec<_> = reply.body.split_terminator("\n\n").collect();
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| event.starts_with("data: {\"id\":\"\"")), "{events:?}");
}

#[tokio::test]
async fn rows_on_request() {
    let accept = [("authorization", "Bearer card"), ("accept", "text/csv, */*;q=0.1")];
    let reply = send_with("GET", "/v1/books:export", &accept, "").await;
    assert_eq!(reply.header("content-type"), "text/csv; charset=utf-8; header=present");
    assert_eq!(reply.header("ratelimit"), "\"books\";r=1");
    assert_eq!(reply.body, "id,title,pages,metadata\r\n,one,,\r\n,\"two\n\",,\r\n");
    // A stream that fails ends without a further row.
    let reply = send_with("GET", "/v1/books:export?limit=2", &accept, "").await;
    assert_eq!(reply.body, "id,title,pages,metadata\r\n,one,,\r\n");
    // A stream without columns has no rows.
    let reply = send_with("GET", "/v1/desk:watch", &accept, "").await;
    assert_eq!(reply.header("content-type"), "application/x-ndjson");
}

#[tokio::test]
async fn a_failure_before_the_first_message_is_a_refusal() {
    let reply = get("/v1/books:export?limit=1").await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.json()["message"], "not now");
}

#[tokio::test]
async fn a_failure_on_the_way_is_the_last_line() {
    let lines = lines(&get("/v1/books:export?limit=2").await.body);
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["message"], "page torn");
    let events = send_with("GET", "/v1/books:export?limit=2", &EVENTS, "").await;
    assert!(events.body.contains("event: error\ndata: {\"code\":15"), "{}", events.body);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_event_stream_sends_keep_alives() {
    let reply = send_with("GET", "/v1/books:export?limit=3", &EVENTS, "").await;
    assert!(reply.body.contains(": still here\n\n"), "{}", reply.body);
    assert_eq!(reply.body.matches("data: ").count(), 2);
    assert_eq!(lines(&get("/v1/books:export?limit=3").await.body).len(), 2);
}

#[tokio::test]
async fn head_of_a_stream_has_no_body() {
    let reply = send("HEAD", "/v1/books:export", "").await;
    assert_eq!((reply.status.as_u16(), reply.body.as_str()), (200, ""));
}

#[tokio::test]
async fn an_event_has_an_id_and_a_document_as_it_stands() {
    let watch = "/v1/desk:watch?after=9007199254740989";
    let reply = send_with("GET", watch, &EVENTS, "").await;
    let expected = "id: 9007199254740990\ndata: {\"b\":1,\"a\":[]}\n\nid: 9007199254740991\n\n";
    assert_eq!(reply.body, expected);
    let first = get(watch).await.body;
    let first = first.lines().next().unwrap();
    assert_eq!(first, r#"{"number":9007199254740990,"note":{"b":1,"a":[]}}"#);
}

#[tokio::test]
async fn last_event_id_wins_over_the_query() {
    let with = |id: &'static str| [EVENTS[0], EVENTS[1], ("last-event-id", id)];
    let reply = send_with("GET", "/v1/desk:watch?after=3", &with("41"), "").await;
    assert!(reply.body.starts_with("id: 42\n"), "{}", reply.body);
    let reply = send_with("GET", "/v1/desk:watch?after=3", &with(""), "").await;
    assert!(reply.body.starts_with("id: 4\n"), "{}", reply.body);
    let reply = send_with("GET", "/v1/desk:watch", &with("x"), "").await;
    assert_eq!(reply.status, 400);
    assert!(reply.body.contains("last-event-id"), "{}", reply.body);
}

#[tokio::test]
async fn an_integer_of_53_bits_is_a_number() {
    let reply = get("/v1/desk:watch?after=9007199254740992").await;
    assert_eq!(reply.status, 400);
    assert!(reply.body.contains("must be an integer from"), "{}", reply.body);
}
