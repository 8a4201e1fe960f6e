//! More calls than the service can decide. The queue is bounded, and calls are refused before any
//! work is done. No tenant is refused or delayed because of another tenant's calls.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use authority_model::proto::runtime::{
    EvaluateRequest, runtime_service_client::RuntimeServiceClient,
};
use authority_process::clock::Clock;
use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tonic::{Code, Request, metadata::MetadataValue};
use tonic_types::StatusExt;

use super::{deadlines::number, figures::figure, process::allowed};
use crate::support::{
    BATCH_EVALUATE, Client, EVALUATE, Plain, TestApp, Wishes,
    database::Database,
    new_tenant, only,
    wire::{self, reason},
};

const RPC: &str = "/authority.runtime.v1.RuntimeService/Evaluate";
/// Takes the lock that every change and every batch needs.
const HOLD: &str = "SELECT pg_advisory_lock(4157001)";
const RELEASE: &str = "SELECT pg_advisory_unlock(4157001)";
const POLITE: &str = "svc:tenant:polite";
/// The number of decisions in a batch.
const EACH: usize = 64;
/// The number of batches that fit: six in progress and 32 that wait.
const FIT: usize = 38;
/// The number of decisions in the six batches.
const PLACES: i64 = 384;
const FLOOD: usize = 44;

/// Status, Retry-After, body, and the time of the response.
type Answer = (u16, Option<String>, Value, Instant);

/// Sends all batches of decisions at once.
fn flood(client: &Client) -> Vec<JoinHandle<Answer>> {
    let body = Arc::new(only("requests", vec![allowed(); EACH]));
    let ask = |_| {
        let (client, body) = (client.clone(), Arc::clone(&body));
        tokio::spawn(async move {
            let request = client.http.post(format!("{}{BATCH_EVALUATE}", client.base));
            let answer = request.bearer_auth(&client.token).json(&*body).send().await.unwrap();
            let after = answer.headers().get("retry-after");
            let after = after.map(|after| after.to_str().unwrap().to_owned());
            let status = answer.status().as_u16();
            (status, after, answer.json().await.unwrap(), Instant::now())
        })
    };
    (0..FLOOD).map(ask).collect()
}

/// Makes one decision of the polite tenant over REST and one over gRPC. Returns the time when both
/// had been answered.
async fn polite(client: Client) -> Instant {
    let subject = "svc:agent:polite:bot";
    let mut grpc = RuntimeServiceClient::connect(client.base.clone()).await.unwrap();
    let bearer: MetadataValue<_> = format!("Bearer {}", client.token).parse().unwrap();
    let mut request = Request::new(EvaluateRequest {
        subject: subject.into(),
        action: "payment.execute".to_owned(),
        purpose: "invoice-settlement".to_owned(),
        ..EvaluateRequest::default()
    });
    request.metadata_mut().insert("authorization", bearer);
    let body = json!({"subject": subject, "action": "payment.execute", "purpose": "any"});
    let (grpc, (status, answer)) = tokio::join!(grpc.evaluate(request), client.evaluate(body));
    grpc.expect("refused because of another tenant's calls");
    assert_eq!(status, 200, "refused because of another tenant's calls: {answer:#}");
    Instant::now()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_refused_before_its_bodies_are_read_and_delays_nobody_else() {
    let app = TestApp::on(Arc::new(Database::fresh().await), Wishes::default()).await;
    let demo = app.demo().await;
    let client = app.client(&demo.api_key);
    assert_eq!(app.owner().create_tenant(new_tenant("Polite", "polite")).await.0, 201);
    let other = app.client(&app.api_key(POLITE, &["runtime:write"]).await);
    // The first decision stores the facts that the others are based on.
    assert_eq!(client.evaluate(allowed()).await.0, 200);
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
    // The body is invalid, but the call is refused before the body is read.
    let broken = wire::Caller::owner(&app).with(Some(&client.token));
    let (status, answer) = broken.rest("POST", EVALUATE, Some(b"{".to_vec())).await;
    assert_eq!((status, answer["error"].text()), (429, "rate_limited"), "{answer:#}");
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
    // Batches that waited in the queue were decided only after others had finished.
    let early = format!("{recorded} AND evaluated_at < '{}'", released.to_rfc3339());
    let early = number(&mut owner, &early).await - before;
    assert!(early <= PLACES, "{early} decisions before the release; {PLACES} fit");
    let later = answered.iter().filter(|at| **at > first).count();
    assert!(later > FIT / 2, "{} of {FIT} batches preceded the polite tenant", FIT - later);
    // Refused batches are not recorded, not even partly.
    let after = number(&mut owner, recorded).await;
    figure(
        &format!(
            "{FLOOD} batches of {EACH} at once, {FIT} of them fit; calls of another tenant in between"
        ),
        &format!(
            "0 of its calls refused, the first answered before {later} of the batches; 0 refused \
             decisions recorded"
        ),
    );
    assert_eq!(after - before, i64::try_from(FIT * EACH).unwrap());
}
