//! The exact cost of a decision, in allocations and bytes of write-ahead log. The bounds are the
//! values that a debug build measures now. A commit that lowers a cost also lowers its bound; one
//! that raises a bound gives the reason.

use std::time::Duration;

use agent_authority::transport::{Answers, Settings, Surfaces};
use allocation_counter::measure;
use authority_store::Db;
use axum::body::Body;
use diesel::{QueryableByName, sql_types::BigInt};
use diesel_async::RunQueryDsl;
use http::{Request, Version};
use prost::Message;
use serde_json::Value;
use tokio::runtime::Builder;
use tower::Service;

use crate::support::{Answered, Client, EVALUATE, STREAM_EVENTS, TestApp, asking, evaluate, only};

/// Allocations by the service for one call that is decided and recorded alone. Includes the
/// transport's framing, without sockets.
const OVER_GRPC: u64 = 290;
const OVER_REST: u64 = 310;
/// Bytes of write-ahead log per decision, if a hundred are stored together.
const LOG: u64 = 1_500;
/// Bytes of write-ahead log per decision, if each decision has an event, which is numbered.
const LOG_WITH_EVENT: u64 = 1_700;

/// The tolerance is a bound divided by this number. A count that is further below its bound fails
/// so that the bound is lowered. The log may also exceed its bound by the tolerance, because page
/// headers and split index pages vary.
const SLACK: u64 = 50;
const CALLS: usize = 60;
/// The decisions that are stored together.
const BATCH: u64 = 100;
const BATCHES: u64 = 15;
const ROUNDS: u64 = 3;

/// Makes a request with an API key.
type MakeRequest = fn(&str) -> Request<Body>;

fn over_grpc(key: &str) -> Request<Body> {
    let context = asking(1200.0, "DE")["context"].clone();
    let message = evaluate(&context).encode_to_vec();
    let length = u32::try_from(message.len()).unwrap();
    let frame = [&[0][..], &length.to_be_bytes(), &message].concat();
    let request = Request::post("/authority.runtime.v1.RuntimeService/Evaluate");
    let request = request.version(Version::HTTP_2).header("content-type", "application/grpc");
    let request = request.header("te", "trailers").header("authorization", bearer(key));
    request.body(Body::from(frame)).unwrap()
}

fn over_rest(key: &str) -> Request<Body> {
    let request = Request::post(EVALUATE).version(Version::HTTP_2);
    let request = request.header("content-type", "application/json");
    let request = request.header("authorization", bearer(key));
    request.body(Body::from(asking(1200.0, "DE").to_string())).unwrap()
}

fn bearer(key: &str) -> String {
    format!("Bearer {key}")
}

#[track_caller]
fn assert_near(counted: u64, bound: u64, above: u64, about: &str) {
    assert!(counted <= bound + above, "{about}: {counted}, and {bound} before");
    let least = bound - bound / SLACK;
    assert!(counted >= least, "{about}: {counted}; lower the bound of {bound}");
}

/// Everything runs on one thread, which counts allocations. Taking the minimum of many calls
/// excludes allocations by background workers.
#[test]
fn a_decision_allocates_no_more_than_before() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (app, key) = runtime.block_on(async {
        let app = TestApp::seeded().await;
        let key = app.demo().await.api_key;
        (app, key)
    });
    let settings = Settings { surfaces: Surfaces::ALL, ..Settings::default() };
    let service = Answers::layered(app.app.entry.clone(), &settings);
    let kinds: [(_, MakeRequest, _); 2] =
        [("gRPC", over_grpc, OVER_GRPC), ("REST", over_rest, OVER_REST)];
    for (about, request, bound) in kinds {
        let calls = (0..CALLS).map(|_| {
            let (request, mut service) = (request(&key), service.clone());
            let mut answered = None;
            let spent = measure(|| {
                answered = Some(runtime.block_on(async {
                    let (head, body) = service.call(request).await.unwrap().into_parts();
                    (head, axum::body::to_bytes(body, usize::MAX).await.unwrap())
                }));
            });
            let (head, body) = answered.unwrap();
            assert!(head.status.is_success() && !body.is_empty(), "{about}: {head:?} {body:?}");
            spent.count_total
        });
        assert_near(calls.min().unwrap(), bound, 0, &format!("allocations over {about}"));
    }
    runtime.block_on(async { drop(app) });
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

/// Makes a hundred decisions in one call.
async fn decide(client: &Client) {
    let requests = vec![asking(1200.0, "DE"); usize::try_from(BATCH).unwrap()];
    let answer = client.batch_evaluate(only("requests", &requests)).await.assert_status(200);
    let results = answer["results"].as_array().unwrap();
    let allowed = |result: &Value| result["answer"]["reason_code"] == "permission_granted";
    assert!(results.iter().all(allowed), "{answer:#}");
}

async fn number(db: &mut Db, sql: &str) -> i64 {
    let found: Number = diesel::sql_query(sql).get_result(db).await.unwrap();
    found.number
}

/// Returns the bytes of write-ahead log for a decision and its event, if it has one. The log is
/// shared by the whole database cluster: these tests must run alone.
async fn written_log(app: &TestApp) -> u64 {
    let client = app.client(&app.demo().await.api_key);
    let mut db = app.database.owner().await;
    let mut decide_and_number = async || {
        decide(&client).await;
        while number(&mut db, "SELECT count(*) AS number FROM event_outbox").await > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // The first decisions write full page images to the log and are not counted.
    decide_and_number().await;
    let mut least = u64::MAX;
    let mut log = app.database.owner().await;
    let mut written = async || {
        let now = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint AS number";
        u64::try_from(number(&mut log, now).await).unwrap()
    };
    for _ in 0..ROUNDS {
        let before = written().await;
        for _ in 0..BATCHES {
            decide_and_number().await;
        }
        least = least.min((written().await - before) / (BATCHES * BATCH));
    }
    least
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_writes_no_more_log_than_before() {
    let app = TestApp::seeded().await;
    assert_near(written_log(&app).await, LOG, LOG / SLACK, "bytes of write-ahead log");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_with_its_event_writes_no_more_log_than_before() {
    let app = TestApp::seeded().await;
    let key = app.client(&app.api_key("svc:tenant:acme", &["events:read"]).await);
    let path = format!("{}{STREAM_EVENTS}?event_type=svc.decision.allowed", key.base);
    let mut stream = key.http.get(path).bearer_auth(&key.token).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    // While the stream is read, every allowed decision has its event.
    tokio::spawn(async move { while let Ok(Some(_)) = stream.chunk().await {} });
    let written = written_log(&app).await;
    let mut db = app.database.owner().await;
    let events =
        "SELECT sum(size) AS number FROM events WHERE event_types = 'svc.decision.allowed'";
    let all = i64::try_from((1 + ROUNDS * BATCHES) * BATCH).unwrap();
    assert_eq!(number(&mut db, events).await, all);
    let about = "bytes of write-ahead log with an event";
    assert_near(written, LOG_WITH_EVENT, LOG_WITH_EVENT / SLACK, about);
}
