//! More calls than can be decided: the queue is bounded, a refusal comes before any work, and no tenant is refused
//! or delayed for what another asks.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use authority_core::clock::Clock;
use authority_model::proto::runtime::{
    EvaluateRequest, runtime_service_client::RuntimeServiceClient,
};
use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tonic::{Code, Request, metadata::MetadataValue};
use tonic_types::StatusExt;

use super::{deadlines::number, figures::figure, process::allowed};
use crate::support::{
    Client, TestApp, Wishes,
    database::Database,
    wire::{self, reason},
};

const EVALUATE: &str = "/api/v1/runtime/evaluate";
const BATCH: &str = "/v1/decisions:batchEvaluate";
const RPC: &str = "/authority.runtime.v1.RuntimeService/Evaluate";
/// Every change and every batch takes this lock.
const HOLD: &str = "SELECT pg_advisory_lock(4157001)";
const RELEASE: &str = "SELECT pg_advisory_unlock(4157001)";
const POLITE: &str = "svc:tenant:polite";
/// Decisions in a batch.
const EACH: usize = 64;
/// Six batches are worked on, and 32 wait: the queue is full.
const FIT: usize = 38;
/// The decisions of these six.
const PLACES: i64 = 384;
const FLOOD: usize = 44;

/// Status, Retry-After, body, and when it came.
type Answer = (u16, Option<String>, Value, Instant);

/// Batches of decisions, all at once.
fn flood(client: &Client) -> Vec<JoinHandle<Answer>> {
    let body = Arc::new(json!({"requests": vec![allowed(); EACH]}));
    let ask = |_| {
        let (client, body) = (client.clone(), Arc::clone(&body));
        tokio::spawn(async move {
            let request = client.http.post(format!("{}{BATCH}", client.base));
            let answer = request.bearer_auth(&client.token).json(&*body).send().await.unwrap();
            let after = answer.headers().get("retry-after");
            let after = after.map(|after| after.to_str().unwrap().to_owned());
            let status = answer.status().as_u16();
            (status, after, answer.json().await.unwrap(), Instant::now())
        })
    };
    (0..FLOOD).map(ask).collect()
}

/// One decision of the polite tenant over each protocol, and when both were there.
async fn polite(client: Client) -> Instant {
    let subject = "svc:agent:polite:bot";
    let mut grpc = RuntimeServiceClient::connect(client.base.clone()).await.unwrap();
    let bearer: MetadataValue<_> = format!("Bearer {}", client.token).parse().unwrap();
    let mut request = Request::new(EvaluateRequest {
        subject: subject.to_owned(),
        action: "payment.execute".to_owned(),
        purpose: "invoice-settlement".to_owned(),
        ..EvaluateRequest::default()
    });
    request.metadata_mut().insert("authorization", bearer);
    let body = json!({"subject": subject, "action": "payment.execute", "purpose": "any"});
    let (grpc, (status, answer)) =
        tokio::join!(grpc.evaluate(request), client.post(EVALUATE, body));
    grpc.expect("refused for what another tenant asks");
    assert_eq!(status, 200, "refused for what another tenant asks: {answer:#}");
    Instant::now()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_refused_before_its_bodies_are_read_and_delays_nobody_else() {
    let app = TestApp::on(Arc::new(Database::fresh().await), Wishes::default()).await;
    let demo = app.demo().await;
    let client = app.client(&demo.api_key);
    let made = json!({"name": "Polite", "slug": "polite"});
    assert_eq!(app.owner().post("/api/v1/tenants", made).await.0, 201);
    let other = app.client(&app.api_key(POLITE, &["runtime:write"]).await);
    // The first decision stores what it was made on.
    assert_eq!(client.post(EVALUATE, allowed()).await.0, 200);
    let mut owner = app.database.owner().await;
    let recorded = "SELECT count(*) AS n FROM decisions WHERE tenant_id = 'svc:tenant:acme'";
    let before = number(&mut owner, recorded).await;

    let mut holding = app.database.owner().await;
    holding.batch_execute(HOLD).await.unwrap();
    let flooding = flood(&client);
    let begun = Instant::now();
    while flooding.iter().filter(|asked| asked.is_finished()).count() < FLOOD - FIT {
        assert!(begun.elapsed() < Duration::from_secs(3), "the queue has no end");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Nobody reads what the body is.
    let broken = wire::Caller::owner(&app).with(Some(&client.token));
    let (status, answer) = broken.rest("POST", EVALUATE, Some(b"{".to_vec())).await;
    assert_eq!((status, &answer["error"]), (429, &json!("rate_limited")), "{answer:#}");
    let refused = broken.grpc(RPC, vec![0xff]).await.unwrap_err();
    assert_eq!(
        (refused.code(), reason(&refused)),
        (Code::ResourceExhausted, "rate_limited".to_owned())
    );
    let info = refused.get_details_error_info().unwrap();
    assert_eq!(info.metadata.get("retry_after").map(String::as_str), Some("1"), "{info:?}");
    let first = tokio::spawn(polite(other.clone()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let released = Clock::default().now();
    holding.batch_execute(RELEASE).await.unwrap();

    let first = first.await.unwrap();
    for _ in 0..3 {
        polite(other.clone()).await;
    }
    let mut answered = Vec::new();
    for asked in flooding {
        let (status, after, answer, at) = asked.await.unwrap();
        match status {
            200 => {
                let results = answer["results"].as_array().unwrap();
                assert!(results.iter().all(|one| one["answer"]["decision_id"].is_string()));
                answered.push(at);
            }
            429 => {
                assert_eq!(after.as_deref(), Some("1"));
                assert_eq!(answer["error"], "rate_limited", "{answer:#}");
            }
            _ => panic!("{status}: {answer:#}"),
        }
    }
    assert_eq!(answered.len(), FIT);
    // Those that waited had no place, and were decided only when they had one.
    let early = format!("{recorded} AND evaluated_at < '{}'", released.to_rfc3339());
    let early = number(&mut owner, &early).await - before;
    assert!(early <= PLACES, "{early} were decided while they waited for places");
    let later = answered.iter().filter(|at| **at > first).count();
    assert!(later > FIT / 2, "the polite tenant waited for {} of {FIT} batches", FIT - later);
    // What was refused is not on record, not even in part.
    let after = number(&mut owner, recorded).await;
    figure(
        &format!(
            "{FLOOD} batches of {EACH} at once, of which {FIT} fit; another tenant asked meanwhile"
        ),
        &format!(
            "0 of its calls refused, before {later} of the batches; 0 refused decisions on record"
        ),
    );
    assert_eq!(after - before, i64::try_from(FIT * EACH).unwrap());
}
