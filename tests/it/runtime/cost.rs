//! The exact cost of a decision, in allocations and bytes of write-ahead log. The bounds are the
//! values that a debug build measures now. A commit that lowers a cost also lowers its bound; one
//! that raises a bound gives the reason.

use agent_authority::transport::{Settings, Surfaces, with_response_layer};
use allocation_counter::measure;
use axum::body::Body;
use diesel::{QueryableByName, sql_types::BigInt};
use diesel_async::RunQueryDsl;
use http::{Request, Version};
use prost::Message;
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tower::Service;

use crate::support::{TestApp, asking, evaluate};

/// Allocations by the service for one call that is decided and recorded alone. Includes the
/// transport's framing, without sockets.
const OVER_GRPC: u64 = 351;
const OVER_REST: u64 = 360;
/// Bytes of write-ahead log per decision, if a hundred are stored together.
const LOG: u64 = 2_680;

/// The tolerance is a bound divided by this number. A count that is further below its bound fails
/// so that the bound is lowered. The log may also exceed its bound by the tolerance, because page
/// headers and split index pages vary.
const SLACK: u64 = 50;
const CALLS: usize = 60;

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
    let request = Request::post("/api/v1/runtime/evaluate").version(Version::HTTP_2);
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
    let service = with_response_layer(app.app.entry.clone(), &settings);
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
struct Written {
    #[diesel(sql_type = BigInt)]
    bytes: i64,
}

/// The log is shared by the whole database cluster: this test must run alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_writes_no_more_log_than_before() {
    const BATCHES: u64 = 15;
    const BATCH: u64 = 100;
    let app = TestApp::seeded().await;
    let client = app.client(&app.demo().await.api_key);
    let batch = json!({"requests": vec![asking(1200.0, "DE"); usize::try_from(BATCH).unwrap()]});
    let mut db = app.database.owner().await;
    let mut written = async || {
        let now = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint AS bytes";
        let Written { bytes } = diesel::sql_query(now).get_result(&mut db).await.unwrap();
        u64::try_from(bytes).unwrap()
    };
    let decide = async || {
        let (status, answer) = client.post("/v1/decisions:batchEvaluate", batch.clone()).await;
        assert_eq!(status, 200, "{answer:#}");
        let results = answer["results"].as_array().unwrap();
        let allowed = |result: &Value| result["answer"]["reason_code"] == "permission_granted";
        assert!(results.iter().all(allowed), "{answer:#}");
    };
    // The first decisions write full page images to the log and are not counted.
    decide().await;
    let mut least = u64::MAX;
    for _ in 0..3 {
        let before = written().await;
        for _ in 0..BATCHES {
            decide().await;
        }
        least = least.min((written().await - before) / (BATCHES * BATCH));
    }
    assert_near(least, LOG, LOG / SLACK, "bytes of write-ahead log");
}
