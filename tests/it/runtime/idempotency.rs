//! Idempotency keys of decisions.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{asking, demo};
use crate::support::Client;

fn authorizing(delegation: &str) -> Value {
    json!({
        "actor": {"entity_id": "svc:agent:acme:invoice-bot"},
        "acting_on_behalf_of": {"delegation_id": delegation},
        "action": "payment.execute",
        "purpose": "invoice-settlement",
        "context": {"amount": 10, "currency": "EUR", "jurisdiction": "DE"},
    })
}

async fn authorize(client: &Client, body: Value, key: &str) -> (u16, Value) {
    let headers = [("idempotency-key", key)];
    client.call("POST", "/v1/runtime/authorize", Some(body), &headers).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_callers_with_one_key_get_one_answer() {
    let (app, client, delegation) = demo().await;
    let calls = (0..64).map(|_| authorize(&client, authorizing(&delegation), "pay-1"));
    let answers = join_all(calls).await;
    let (status, first) = &answers[0];
    assert_eq!((*status, &first["decision"]), (200, &"allow_with_constraints".into()));
    for answer in &answers {
        assert_eq!(answer, &answers[0]);
    }
    let mut db = app.database.owner().await;
    let count: i64 = diesel_async::RunQueryDsl::get_result(
        diesel::dsl::sql::<diesel::sql_types::BigInt>("SELECT count(*) FROM decisions"),
        &mut db,
    )
    .await
    .unwrap();
    assert_eq!(count, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_with_another_body_is_refused() {
    let (_app, client, delegation) = demo().await;
    let (status, _) = authorize(&client, authorizing(&delegation), "pay-2").await;
    assert_eq!(status, 200);
    let mut other = authorizing(&delegation);
    other["context"]["amount"] = json!(11);
    let (status, answer) = authorize(&client, other, "pay-2").await;
    assert_eq!((status, &answer["error"]), (422, &"idempotency_key_reused".into()));
    // Another door, another key.
    let headers = [("idempotency-key", "pay-2")];
    let body = Some(asking(5.0, "DE"));
    let (status, _) = client.call("POST", "/api/v1/runtime/evaluate", body, &headers).await;
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_allow_is_not_repeated_once_it_is_stopped() {
    let (app, client, delegation) = demo().await;
    let (_, first) = authorize(&client, authorizing(&delegation), "pay-3").await;
    assert_eq!(first["decision"], "allow_with_constraints");
    let path = format!("/api/v1/delegations/{delegation}/revoke");
    let (status, _) = app.owner().post(&path, json!({"reason": "lost"})).await;
    assert_eq!(status, 200);
    let (status, answer) = authorize(&client, authorizing(&delegation), "pay-3").await;
    assert_eq!((status, &answer["error"]), (409, &"decision_stopped".into()), "{answer:#}");
    assert!(answer["message"].as_str().unwrap().contains("delegation_revoked"));
}
