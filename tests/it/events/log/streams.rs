//! Streams of new events.

use std::time::Duration;

use authority_model::proto::events::{
    StreamEventsRequest, event_service_client::EventServiceClient,
};
use serde_json::{Value, json};
use tonic::{Request, metadata::MetadataValue};

use super::{AGENT, PATIENCE, TENANT, demo, events, told};
use crate::support::{
    Answered, Client, Limits, Members, Plain, STREAM_EVENTS, STREAM_NOTIFICATIONS, TestApp,
    new_api_key, new_stop, only,
};

/// Server-sent events as a browser reads them.
struct Sse {
    answer: reqwest::Response,
    rest: String,
}

impl Sse {
    async fn open(client: &Client, path: &str, last: Option<&str>) -> Self {
        let mut request = client.http.get(format!("{}{path}", client.base));
        request = request.bearer_auth(&client.token).header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        Self { answer, rest: String::new() }
    }

    /// Returns the id and the data of the next block; `None` at the end.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((block, rest)) = self.rest.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.rest = rest;
                let line = |name: &str| {
                    block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default()
                };
                let data = serde_json::from_str(line("data: ")).unwrap_or_default();
                return Some((line("id: ").to_owned(), data));
            }
            let chunk = tokio::time::timeout(PATIENCE, self.answer.chunk()).await;
            let chunk = chunk.expect("nothing came").ok()??;
            self.rest.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

async fn stop(app: &TestApp) -> String {
    app.owner().create_stop_signal(new_stop(AGENT, "x")).await.assert_made("stop_signal")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_resumes_after_the_last_event_that_it_has() {
    let (app, _, delegation) = demo().await;
    told(&app, "svc.authority.granted", &delegation).await;
    let admin = app.client(&app.member_token(TENANT, "auditor"));
    let head = events(&app).await.len();
    let path = "/api/v1/app/events:stream";
    let mut stream = Sse::open(&admin, path, None).await;
    let id = stop(&app).await;
    let (place, event) = stream.next().await.unwrap();
    assert_eq!((place, event["subject_ref"].text()), ((head + 1).to_string(), id.as_str()));
    drop(stream);
    let lifted = app.owner().lift_stop_signal(&id).await;
    assert_eq!(lifted.0, 200);
    let mut again = Sse::open(&admin, path, Some(&(head + 1).to_string())).await;
    let (place, event) = again.next().await.unwrap();
    assert_eq!(place, (head + 2).to_string());
    assert_eq!(event["event_type"], "svc.recovery.completed");
    let mut all = Sse::open(&admin, "/api/v1/app/events:stream?after=0", None).await;
    for number in 1..=head + 2 {
        assert_eq!(all.next().await.unwrap().0, number.to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_gives_the_bytes_that_a_page_gives() {
    let (app, _, delegation) = demo().await;
    told(&app, "svc.authority.granted", &delegation).await;
    let key = app.api_key(TENANT, &["events:read"]).await;
    let mut grpc = EventServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let mut request = Request::new(StreamEventsRequest { after: Some(0), ..Default::default() });
    let bearer: MetadataValue<_> = format!("Bearer {key}").parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    let mut stream = grpc.stream_events(request).await.unwrap().into_inner();
    let (_, page) = app.client(&key).text("GET", "/v1/events", None).await;
    for sequence in 1..=events(&app).await.len() {
        let message = stream.message().await.unwrap().unwrap();
        assert_eq!(message.sequence, i64::try_from(sequence).unwrap());
        let event = String::from_utf8(message.event.unwrap()).unwrap();
        assert!(page.contains(&event), "{event}");
        let canonical =
            serde_json_canonicalizer::to_string(&serde_json::from_str::<Value>(&event).unwrap());
        assert_eq!(canonical.unwrap(), event);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_with_its_key() {
    let (app, _, _) = demo().await;
    let owner = app.owner();
    let (_, made) = owner.create_api_key(new_api_key("reader", &["events:read"])).await;
    let key = app.client(made["secret"].as_str().unwrap());
    let mut stream = Sse::open(&key, STREAM_EVENTS, None).await;
    let id = made["api_key"]["id"].as_str().unwrap();
    assert_eq!(owner.text("DELETE", &format!("/api/v1/api-keys/{id}"), None).await.0, 200);
    stop(&app).await;
    // The stream ends before it sends the event of the stop.
    while let Some((_, data)) = stream.next().await {
        assert_ne!(data["event_type"], "svc.actor.stopped", "{data:#}");
    }
}

/// Opens a stream with its own key; returns the stream and the key's path.
async fn reading(app: &TestApp, ip_allowlist: Value) -> (Sse, String) {
    let body = new_api_key("reader", &["events:read"]).with("ip_allowlist", &ip_allowlist);
    let (_, made) = app.owner().create_api_key(body).await;
    let key = app.client(made["secret"].as_str().unwrap());
    let stream = Sse::open(&key, STREAM_EVENTS, None).await;
    (stream, format!("/api/v1/api-keys/{}", made["api_key"]["id"].as_str().unwrap()))
}

/// A stream ends once its key is bound to principals.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_when_its_key_is_bound_to_principals() {
    let (app, _, _) = demo().await;
    let owner = app.owner();
    let (mut stream, path) = reading(&app, Value::Null).await;
    let bound = only("principal_ids", ["svc:agent:acme:support-bot"]);
    assert_eq!(owner.patch(&path, bound).await.0, 200);
    stop(&app).await;
    while let Some((_, data)) = stream.next().await {
        assert_ne!(data["event_type"], "svc.actor.stopped", "{data:#}");
    }
}

/// The permitted addresses of a key are also checked while its stream is open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_when_its_key_may_no_longer_be_used_from_there() {
    let (app, _, _) = demo().await;
    let owner = app.owner();
    let (mut stream, path) = reading(&app, json!(["127.0.0.0/8"])).await;
    // The narrower list still contains the client's address: the stream stays open.
    assert_eq!(owner.patch(&path, only("ip_allowlist", ["127.0.0.1"])).await.0, 200);
    let first = stop(&app).await;
    assert_eq!(stream.next().await.unwrap().1["subject_ref"], first);
    assert_eq!(owner.patch(&path, only("ip_allowlist", ["192.0.2.0/24"])).await.0, 200);
    stop(&app).await;
    while let Some((_, data)) = stream.next().await {
        assert_ne!(data["event_type"], "svc.actor.stopped", "{data:#}");
    }
}

/// Even the installation's owner can't read the events of a suspended tenant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_tenants_events_are_neither_pulled_nor_streamed() {
    let (app, _, _) = demo().await;
    let owner = app.owner();
    let mut stream =
        Sse::open(&owner, &format!("/api/v1/events:stream?tenant_id={TENANT}"), None).await;
    assert_eq!(owner.update_tenant(TENANT, only("state", "suspended")).await.0, 200);
    for of in ["events", "events:stream"] {
        owner.get(&format!("/api/v1/{of}?tenant_id={TENANT}")).await.assert_status(403);
    }
    let ended = async { while stream.next().await.is_some() {} };
    assert!(tokio::time::timeout(std::time::Duration::from_secs(10), ended).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_has_at_most_twenty_streams() {
    let (app, _, _) = demo().await;
    let mut streams = Vec::new();
    for _ in 0..4 {
        let key = app.client(&app.api_key(TENANT, &["events:read"]).await);
        for _ in 0..5 {
            streams.push(Sse::open(&key, STREAM_EVENTS, None).await);
        }
    }
    let key = app.client(&app.api_key(TENANT, &["events:read"]).await);
    let (status, refused) = key.get(STREAM_EVENTS).await;
    assert_eq!((status, refused["error"].text()), (429, "rate_limited"), "{refused:#}");
    streams.pop();
    let begun = std::time::Instant::now();
    while key
        .http
        .get(format!("{}{STREAM_EVENTS}", key.base))
        .bearer_auth(&key.token)
        .send()
        .await
        .unwrap()
        .status()
        != 200
    {
        assert!(begun.elapsed() < PATIENCE, "the closed stream is still counted");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the response, which must be complete and not a stream that stays open.
async fn at_once<T>(answer: impl Future<Output = T>) -> T {
    let answer = tokio::time::timeout(Duration::from_secs(10), answer);
    answer.await.expect("the stream is open instead of refused")
}

/// The smaller limit of streams of events is shown, not the limit of all streams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_shows_how_many_more_may_be_opened() {
    let (app, _, _) = demo().await;
    let key = app.client(&app.api_key(TENANT, &["events:read"]).await);
    let person = app.person(TENANT, "admin", "ann@acme.example");
    let mut streams = Vec::new();
    for (client, path) in [(&key, STREAM_EVENTS), (&person, STREAM_NOTIFICATIONS)] {
        for open in 0..5 {
            let stream = Sse::open(client, path, None).await;
            let shown = Limits::of(&stream.answer);
            let (own, all) = (4 - open, 19 - open);
            let left = format!(r#""streams_per_credential";r={own}, "streams_per_tenant";r={all}"#);
            assert_eq!(shown.left, left, "{path}");
            let limit = |name: &str, most: u32| {
                format!(r#""streams_per_{name}";q={most};qu="concurrent-requests""#)
            };
            let policy = [limit("credential", 5), limit("tenant", 20)].join(", ");
            assert_eq!(shown.policy, policy, "{path}");
            streams.push(stream);
        }
        let (refused, _) = at_once(Limits::of_call(client, "GET", path, None, &[])).await;
        assert_eq!(
            (refused.status, refused.left.as_str()),
            (429, r#""streams_per_credential";r=0"#)
        );
    }
}

/// A single key can't use up the streams that its tenant may open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_takes_few_of_its_tenants_streams() {
    let (app, _, _) = demo().await;
    let key = app.client(&app.api_key(TENANT, &["events:read"]).await);
    let mut streams = Vec::new();
    for _ in 0..5 {
        streams.push(Sse::open(&key, STREAM_EVENTS, None).await);
    }
    let (status, refused) = at_once(key.get(STREAM_EVENTS)).await;
    assert_eq!((status, refused["error"].text()), (429, "rate_limited"), "{refused:#}");
    let message = "this credential has 5 streams of events open on this node; close one";
    assert_eq!(refused["message"], message, "{refused:#}");
    let another = app.client(&app.api_key(TENANT, &["events:read"]).await);
    let person = app.person(TENANT, "admin", "ann@acme.example");
    streams.push(Sse::open(&another, STREAM_EVENTS, None).await);
    streams.push(Sse::open(&person, "/api/v1/app/events:stream", None).await);

    // Streams of notifications are counted separately, with the same limit.
    for _ in 0..5 {
        streams.push(Sse::open(&person, STREAM_NOTIFICATIONS, None).await);
    }
    let (status, refused) = at_once(person.get(STREAM_NOTIFICATIONS)).await;
    assert_eq!((status, refused["error"].text()), (429, "rate_limited"), "{refused:#}");
    let other = app.person(TENANT, "approver", "bob@acme.example");
    streams.push(Sse::open(&other, STREAM_NOTIFICATIONS, None).await);
}
