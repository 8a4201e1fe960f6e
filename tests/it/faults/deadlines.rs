//! Every call has a deadline: the service's own, or the caller's if that is earlier.

use std::time::{Duration, Instant};

use prost::Message;
use serde_json::json;

use authority_model::proto::runtime::{EvaluateRequest, WatchStopConditionsRequest};
use authority_store::Db;
use diesel::{QueryableByName, sql_types::BigInt};
use diesel_async::RunQueryDsl;

use super::process::allowed;
use crate::support::{Client, Line, TestApp, Wishes, database::Database};

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

pub(super) async fn number(db: &mut Db, sql: &str) -> i64 {
    let found: Number = diesel::sql_query(sql).get_result(db).await.unwrap();
    found.n
}

/// Starts a node that reaches its database through a proxy, and a client of the demonstration
/// tenant.
async fn behind_a_line() -> (TestApp, Line, Client) {
    let database = std::sync::Arc::new(Database::fresh().await);
    let line = Line::before(&database).await;
    let wishes = Wishes { address: Some(line.address()), ..Wishes::default() };
    let node = TestApp::on(database, wishes).await;
    let demo = node.demo().await;
    let client = node.client(&demo.api_key);
    let (status, answer) = client.evaluate(allowed()).await;
    assert_eq!((status, &answer["decision"]), (200, &"allow".into()), "{answer}");
    (node, line, client)
}

/// Makes one gRPC-Web call without a client library, which would add its own timeout. Returns the
/// status, from the headers or the trailers, and the call's duration.
async fn grpc(client: &Client, path: &str, message: &[u8], timeout: &str) -> (String, Duration) {
    let mut frame = vec![0];
    frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    frame.extend(message);
    let begun = Instant::now();
    let answer = client
        .http
        .post(format!("{}{path}", client.base))
        .header("content-type", "application/grpc-web+proto")
        .header("x-grpc-web", "1")
        .header("grpc-timeout", timeout)
        .bearer_auth(&client.token)
        .body(frame)
        .send()
        .await
        .unwrap();
    let in_headers = answer.headers().get("grpc-status").cloned();
    let body = answer.bytes().await.unwrap();
    let status = in_headers.map_or_else(
        || {
            let text = String::from_utf8_lossy(&body).into_owned();
            let rest = text.split("grpc-status:").nth(1).unwrap_or_default().to_owned();
            rest.split("\r\n").next().unwrap_or_default().trim().to_owned()
        },
        |status| status.to_str().unwrap().to_owned(),
    );
    (status, begun.elapsed())
}

const UNAVAILABLE: &str = "14";
const DEADLINE_EXCEEDED: &str = "4";
const EVALUATE: &str = "/authority.runtime.v1.RuntimeService/Evaluate";

fn question() -> Vec<u8> {
    let ask: EvaluateRequest = EvaluateRequest {
        subject: "svc:agent:acme:invoice-bot".to_owned(),
        action: "payment.execute".to_owned(),
        purpose: "invoice-settlement".to_owned(),
        ..EvaluateRequest::default()
    };
    ask.encode_to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_has_two_seconds_and_another_call_ten() {
    let (node, line, client) = behind_a_line().await;
    line.hold();
    let begun = Instant::now();
    let (status, answer) = client.evaluate(allowed()).await;
    assert_eq!((status, &answer["error"]), (503, &"unavailable".into()), "{answer}");
    // This is the call's own deadline, because the recorder's batch times out only after 4 s.
    assert!(answer["message"].as_str().unwrap().contains("within 2 s"), "{answer}");
    assert!(begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());
    let (status, took) = grpc(&client, EVALUATE, &question(), "60S").await;
    assert_eq!(status, UNAVAILABLE);
    assert!(took < Duration::from_secs(30), "{took:?}");
    let (status, answer) = node.owner().list_tenants("").await;
    assert_eq!((status, &answer["error"]), (503, &"unavailable".into()), "{answer}");
    // This is the call's own deadline, because the store's transaction times out only after 17 s
    // here.
    assert!(answer["message"].as_str().unwrap().contains("within 10 s"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callers_own_time_is_kept() {
    let (_node, line, client) = behind_a_line().await;
    line.hold();
    let (status, took) = grpc(&client, EVALUATE, &question(), "300m").await;
    assert_eq!(status, DEADLINE_EXCEEDED);
    assert!(took >= Duration::from_millis(300), "{took:?}");
    let (status, _) = grpc(&client, EVALUATE, &question(), "soon").await;
    assert_eq!(status, "3", "an invalid timeout is refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_at_its_callers_time() {
    let (_node, _line, client) = behind_a_line().await;
    let (_, answer) = client.evaluate(allowed()).await;
    let decision_id = answer["decision_id"].as_str().unwrap().to_owned();
    let watch = WatchStopConditionsRequest { decision_id }.encode_to_vec();
    let path = "/authority.runtime.v1.RuntimeService/WatchStopConditions";
    let call = grpc(&client, path, &watch, "1500m");
    let ended = tokio::time::timeout(Duration::from_secs(20), call).await;
    let (status, took) = ended.expect("the stream continues");
    assert_eq!(status, DEADLINE_EXCEEDED);
    assert!(took >= Duration::from_millis(1500), "{took:?}");
}

/// After its caller's timeout, a decision is recorded only if its batch was already running.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_decisions_without_a_caller_are_not_recorded() {
    let (node, line, client) = behind_a_line().await;
    let mut owner = node.database.owner().await;
    let before = number(&mut owner, "SELECT count(*) AS n FROM decisions").await;
    line.hold();
    let ask = |client: Client| async move { grpc(&client, EVALUATE, &question(), "600m").await.0 };
    let first = tokio::spawn(ask(client.clone()));
    // Waits until the first decision's batch has been sent to the database.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let queued: Vec<_> = (0..5).map(|_| tokio::spawn(ask(client.clone()))).collect();
    for asked in queued.into_iter().chain([first]) {
        assert_eq!(asked.await.unwrap(), DEADLINE_EXCEEDED);
    }
    line.release();
    let (status, answer) = client.evaluate(allowed()).await;
    assert_eq!((status, &answer["decision"]), (200, &"allow".into()), "{answer}");
    let after = number(&mut owner, "SELECT count(*) AS n FROM decisions").await;
    assert_eq!(after - before, 2, "the one under way, and the last");
}

/// A decision that commits after its caller's deadline can be found by its idempotency key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_commit_is_found_by_its_idempotency_key() {
    let (node, line, client) = behind_a_line().await;
    let mut owner = node.database.owner().await;
    let keyed = async || {
        let headers = [("idempotency-key", "late")];
        client.evaluate_with(allowed(), &headers).await
    };
    // The insert of the key is slow and commits after the call's deadline. Only the response is
    // late.
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN PERFORM pg_sleep(2.6); RETURN NULL; END $$; \
        CREATE TRIGGER slow AFTER INSERT ON idempotency_keys \
        FOR EACH STATEMENT EXECUTE FUNCTION slow()";
    node.database.run(slow).await;
    let (status, answer) = keyed().await;
    assert_eq!((status, &answer["error"]), (503, &"unavailable".into()), "{answer}");
    let begun = Instant::now();
    while number(&mut owner, "SELECT count(decision_id) AS n FROM idempotency_keys").await == 0 {
        assert!(begun.elapsed() < Duration::from_secs(10), "it was not committed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (status, answer) = keyed().await;
    assert_eq!((status, &answer["decision"]), (200, &"allow".into()), "{answer}");
    let stored =
        "SELECT count(*) AS n FROM decisions JOIN idempotency_keys k ON k.decision_id = id";
    assert_eq!(number(&mut owner, stored).await, 1);
    assert_ne!(answer["decision_id"], json!(null));
    drop(line);
}
