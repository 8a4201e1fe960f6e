//! Tests that streams end at once, over every transport, when their credential, person or tenant
//! becomes invalid.

use std::time::{Duration, Instant};

use authority_api::identity::dev_provider::Holder;
use authority_model::proto::runtime::{
    WatchDecisionRequest, WatchStopConditionsRequest, runtime_service_client::RuntimeServiceClient,
};
use authority_process::clock::Clock;
use chrono::TimeDelta;
use prost::Message;
use serde_json::Value;
use tonic::{Code, Request, Streaming, metadata::MetadataValue};

use super::{Lines, TENANT, asking, decided, demo, nobody_watches, permitted};
use crate::support::{
    Answered, Client, Members, TestApp, new_api_key, new_principal, nothing, only,
};

const NORA: &str = "nora@acme.example";
/// The time within which streams must end on both nodes. Long enough for a busy machine.
const AT_ONCE: Duration = Duration::from_secs(3);
/// Allowed clock skew in seconds: a token is accepted this long after its `exp`.
const LEEWAY: i64 = 30;

/// Returns a token that is refused this many seconds from now.
#[track_caller]
fn token(app: &TestApp, seconds: i64) -> String {
    let holder = Holder::Member {
        tenant_id: TENANT.into(),
        role: "viewer".to_owned(),
        email: NORA.to_owned(),
    };
    let lifetime = TimeDelta::seconds(seconds - LEEWAY);
    app.app.provider.as_ref().unwrap().issue(&holder, lifetime).unwrap()
}

/// The decisions to watch: a held one and a permission.
struct Watched {
    held: String,
    permitted: String,
}

/// Both streams of one caller, each after its first message.
struct Both {
    updates: Lines,
    stops: Lines,
}

impl Watched {
    async fn new(client: &Client) -> Self {
        let held = decided(client, asking(25_000.0, "DE"), "require_approval").await;
        Self { held, permitted: permitted(client).await }
    }

    async fn open(&self, caller: &Client) -> Both {
        let mut updates = Lines::open(caller, &format!("/v1/decisions/{}:watch", self.held)).await;
        assert_eq!(updates.next().await.unwrap()["approval_state"], "pending");
        let (stops, _) = Lines::stops(caller, &self.permitted).await;
        Both { updates, stops }
    }
}

impl Both {
    /// Returns the errors with which both streams end soon.
    async fn end(mut self) -> [String; 2] {
        let begun = Instant::now();
        let last = |event: Value| event["error"].as_str().unwrap_or_default().to_owned();
        let ended = [last(self.updates.last().await), last(self.stops.last().await)];
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
        ended
    }
}

async fn principal(app: &TestApp, more: Value) -> String {
    let body = new_principal("human", "Nora").and(&more);
    let made = app.owner().create_principal(body).await.assert_status(201);
    format!("/api/v1/principals/{}", made["principal"]["id"].as_str().unwrap())
}

async fn suspend(app: &TestApp, path: &str) {
    assert_eq!(app.owner().patch(path, only("state", "suspended")).await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_its_token() {
    let (app, client, _) = demo().await;
    let watched = Watched::new(&client).await;
    // Token times are whole seconds: this token is refused 2 to 3 s from now.
    let begun = Instant::now();
    let text = token(&app, 3);
    let both = watched.open(&app.client(&text)).await;
    let owner = Holder::Owner { email: "o@example.org".to_owned() };
    let lifetime = TimeDelta::seconds(3 - LEEWAY);
    let owner = app.app.provider.as_ref().unwrap().issue(&owner, lifetime).unwrap();
    let owners = watched.open(&app.client(&owner)).await;
    assert_eq!(both.end().await, ["unauthenticated"; 2]);
    assert!(begun.elapsed() > Duration::from_millis(1900), "{:?}", begun.elapsed());
    assert_eq!(owners.end().await, ["unauthenticated"; 2]);
    assert_eq!(app.client(&text).get("/api/v1/app/approvals").await.0, 401);
    nobody_watches(&app).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_its_person() {
    let (app, client, _) = demo().await;
    let watched = Watched::new(&client).await;
    let nora = app.person(TENANT, "viewer", NORA);
    let by_email = principal(&app, only("email", NORA)).await;
    let other = watched.open(&app.person(TENANT, "viewer", "vic@acme.example")).await;
    let mut both = watched.open(&nora).await;
    suspend(&app, &by_email).await;
    assert_eq!(both.end().await, ["forbidden"; 2]);
    assert_eq!(app.owner().patch(&by_email, only("state", "active")).await.0, 200);
    both = watched.open(&nora).await;
    assert_eq!(app.owner().call("DELETE", &by_email, None, &[]).await.0, 200);
    assert_eq!(both.end().await, ["forbidden"; 2]);
    // Her token's subject now has its own principal. The deleted principal no longer matters.
    let by_subject = principal(&app, only("external_subject", format!("dev|{NORA}"))).await;
    both = watched.open(&nora).await;
    suspend(&app, &by_subject).await;
    assert_eq!(both.end().await, ["forbidden"; 2]);
    // Only Nora's two streams have ended.
    assert_eq!(app.app.graph.watchers(&TENANT.parse().unwrap()), 2);
    drop(other);
    nobody_watches(&app).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_its_tenant() {
    let (app, client, _) = demo().await;
    let watched = Watched::new(&client).await;
    let callers = [client.clone(), app.person(TENANT, "viewer", NORA), app.owner()];
    let mut streams = Vec::new();
    for caller in &callers {
        streams.push(watched.open(caller).await);
    }
    suspend(&app, "/api/v1/tenants/acme").await;
    let owners = streams.pop().unwrap();
    for Both { mut updates, mut stops } in streams {
        assert_eq!(updates.last().await["error"], "forbidden");
        // The stop condition is sent before the stream ends.
        assert_eq!(stops.last().await["stop_condition"], "tenant.suspended");
    }
    // The installation's owner does not belong to the tenant: the owner's streams stay open.
    let Both { updates, mut stops } = owners;
    assert_eq!(stops.last().await["stop_condition"], "tenant.suspended");
    assert_eq!(app.app.graph.watchers(&TENANT.parse().unwrap()), 1);
    drop(updates);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_its_key_and_with_the_secret_that_was_shown() {
    let (app, client, _) = demo().await;
    let watched = Watched::new(&client).await;
    let owner = app.owner();
    let key = async |more: Value| {
        let body = new_api_key("w", &["runtime:read"]).and(&more);
        let made = owner.create_api_key(body).await.assert_status(201);
        let path = format!("/api/v1/api-keys/{}", made["api_key"]["id"].as_str().unwrap());
        (path, app.client(made["secret"].as_str().unwrap()))
    };
    let end = Clock::default().now() + TimeDelta::seconds(2);
    let (_, short) = key(only("expires_at", end.to_rfc3339())).await;
    assert_eq!(watched.open(&short).await.end().await, ["unauthenticated"; 2]);
    assert!(Clock::default().now() >= end);

    // This key gets an expiry while its streams are open.
    let (path, caller) = key(nothing()).await;
    let both = watched.open(&caller).await;
    let end = Clock::default().now() + TimeDelta::seconds(2);
    assert_eq!(owner.patch(&path, only("expires_at", end.to_rfc3339())).await.0, 200);
    assert_eq!(both.end().await, ["unauthenticated"; 2]);
    assert!(Clock::default().now() >= end);

    // Rotating a key ends the streams of its old secret, at once or after the overlap.
    let (path, caller) = key(nothing()).await;
    let both = watched.open(&caller).await;
    let rotate = format!("{path}/rotate");
    let rotated = owner.post(&rotate, nothing()).await.assert_status(200);
    assert_eq!(both.end().await, ["unauthenticated"; 2]);
    let caller = app.client(rotated["secret"].as_str().unwrap());
    let both = watched.open(&caller).await;
    let begun = Instant::now();
    let rotated = owner.post(&rotate, only("overlap_seconds", 2)).await.assert_status(200);
    let new = watched.open(&app.client(rotated["secret"].as_str().unwrap())).await;
    assert_eq!(both.end().await, ["unauthenticated"; 2]);
    assert!(begun.elapsed() > Duration::from_millis(1900), "{:?}", begun.elapsed());
    assert_eq!(app.app.graph.watchers(&TENANT.parse().unwrap()), 2);
    drop(new);
}

/// Returns the code with which a gRPC stream ends.
async fn ended<M>(mut stream: Streaming<M>) -> Code {
    loop {
        match stream.message().await {
            Ok(Some(_)) => {}
            Ok(None) => return Code::Ok,
            Err(status) => return status.code(),
        }
    }
}

#[track_caller]
fn request<M>(token: &str, message: M) -> Request<M> {
    let mut request = Request::new(message);
    let bearer: MetadataValue<_> = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    request
}

/// Makes one streaming call as raw HTTP.
async fn raw(client: &Client, path: &str, grpc: Option<Vec<u8>>) -> reqwest::Response {
    let url = format!("{}{path}", client.base);
    let request = match grpc {
        None => client.http.get(url).header("accept", "text/event-stream"),
        Some(message) => {
            let mut frame = vec![0];
            frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
            frame.extend(message);
            let web = ("content-type", "application/grpc-web+proto");
            client.http.post(url).header(web.0, web.1).body(frame)
        }
    };
    let answer = request.bearer_auth(&client.token).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer
}

/// Returns everything that a raw stream sends until it ends.
async fn whole(answer: reqwest::Response) -> String {
    let body = tokio::time::timeout(super::PATIENCE, answer.bytes()).await;
    String::from_utf8_lossy(&body.expect("the stream continues").unwrap()).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_every_transport() {
    let (app, client, _) = demo().await;
    let Watched { held, permitted } = Watched::new(&client).await;
    let person = principal(&app, only("external_subject", format!("dev|{NORA}"))).await;
    // In the first round her token expires; in the second she is suspended.
    for (seconds, code) in [(3, Code::Unauthenticated), (3600, Code::PermissionDenied)] {
        let caller = app.client(&token(&app, seconds));
        let mut grpc = RuntimeServiceClient::connect(app.base_url().to_owned()).await.unwrap();
        let decision_id = held.clone();
        let asked = request(&caller.token, WatchDecisionRequest { decision_id });
        let updates = grpc.watch_decision(asked).await.unwrap().into_inner();
        let stop = WatchStopConditionsRequest { decision_id: permitted.clone() };
        let asked = request(&caller.token, stop.clone());
        let stops = grpc.watch_stop_conditions(asked).await.unwrap().into_inner();
        let service = "/authority.runtime.v1.RuntimeService";
        let path = format!("{service}/WatchStopConditions");
        let web = raw(&caller, &path, Some(stop.encode_to_vec())).await;
        let path = format!("/v1/decisions/{permitted}:watch-stop-conditions");
        let events = raw(&caller, &path, None).await;
        if code == Code::PermissionDenied {
            suspend(&app, &person).await;
        }
        assert_eq!((ended(updates).await, ended(stops).await), (code, code));
        let web = whole(web).await;
        assert!(web.contains(&format!("grpc-status:{}", code as i32)), "{web}");
        let events = whole(events).await;
        let (_, last) =
            events.split_once("event: error\ndata: ").expect("the last event is an error");
        let word = match code {
            Code::Unauthenticated => "unauthenticated",
            _ => "forbidden",
        };
        assert!(last.contains(&format!(r#""error":"{word}""#)), "{last}");
    }
    nobody_watches(&app).await;
}
