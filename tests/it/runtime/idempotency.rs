//! Idempotency keys of decisions.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{asking, demo};
use crate::support::{
    AUTHORIZE, Answered, BATCH_EVALUATE, Client, EVALUATE, EVALUATE_DECISION, new_api_key, only,
};

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
    client.call("POST", AUTHORIZE, Some(body), &headers).await
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
    other["context"]["amount"] = 11.into();
    let (status, answer) = authorize(&client, other, "pay-2").await;
    assert_eq!((status, &answer["error"]), (422, &"idempotency_key_reused".into()));
    // The same key in another operation is a different key.
    let headers = [("idempotency-key", "pay-2")];
    let body = Some(asking(5.0, "DE"));
    let (status, _) = client.call("POST", EVALUATE, body, &headers).await;
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_allow_is_not_repeated_once_it_is_stopped() {
    let (app, client, delegation) = demo().await;
    let (_, first) = authorize(&client, authorizing(&delegation), "pay-3").await;
    assert_eq!(first["decision"], "allow_with_constraints");
    let (status, _) = app.owner().revoke_delegation(&delegation, Some("lost")).await;
    assert_eq!(status, 200);
    let (status, answer) = authorize(&client, authorizing(&delegation), "pay-3").await;
    assert_eq!((status, &answer["error"]), (409, &"decision_stopped".into()), "{answer:#}");
    assert!(answer["message"].as_str().unwrap().contains("delegation_revoked"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_its_callers_own() {
    let (app, client, delegation) = demo().await;
    let stranger = app.client(&app.api_key("svc:tenant:acme", &["runtime:write"]).await);
    let owner = app.owner();
    let bare = |amount: f64| asking(amount, "DE");
    let authorizing = |amount: f64| {
        let mut body = authorizing(&delegation);
        body["context"]["amount"] = json!(amount);
        body
    };
    let batch = |amount: f64| json!({"requests": [asking(amount, "DE")]});
    for (path, body, other) in [
        (EVALUATE, bare(5.0), bare(6.0)),
        (AUTHORIZE, authorizing(5.0), authorizing(6.0)),
        (EVALUATE_DECISION, bare(5.0), bare(6.0)),
        (BATCH_EVALUATE, batch(5.0), batch(6.0)),
    ] {
        let ask = async |who: &Client, body: &Value, key: &str| {
            let headers = [("idempotency-key", key)];
            let (status, answer) = who.call("POST", path, Some(body.clone()), &headers).await;
            assert_eq!(status, 200, "{path}: {answer:#}");
            let one = if answer["results"].is_array() { &answer["results"][0] } else { &answer };
            let id = one["decision_id"].as_str().or(one["answer"]["decision_id"].as_str());
            id.unwrap_or_else(|| panic!("{path}: {answer:#}")).to_owned()
        };
        // Two callers with the same keys don't block each
        // other, and neither gets the other's response.
        let first = [ask(&client, &body, "1").await, ask(&client, &body, "2").await];
        for who in [&stranger, &owner] {
            let theirs = ask(who, &other, "1").await;
            assert!(!first.contains(&theirs), "{path}");
            assert_eq!(ask(who, &other, "1").await, theirs, "{path}");
            assert!(!first.contains(&ask(who, &body, "2").await), "{path}");
        }
        assert_eq!(ask(&client, &body, "1").await, first[0], "{path}");
    }
    // Each caller reports on its own decision.
    for (who, amount) in [(&client, 7.0), (&stranger, 8.0)] {
        let (_, made) = who.evaluate(bare(amount)).await;
        let path = format!("/v1/decisions/{}:report", made["decision_id"].as_str().unwrap());
        let headers = [("idempotency-key", "1")];
        let told = Some(only("outcome", "executed"));
        who.call("POST", &path, told, &headers).await.assert_status(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotated_key_stays_the_same_caller() {
    let (app, _, delegation) = demo().await;
    let (_, made) = app.owner().create_api_key(new_api_key("r", &["runtime:write"])).await;
    let before = app.client(made["secret"].as_str().unwrap());
    let first = authorize(&before, authorizing(&delegation), "pay-5").await.assert_status(200);
    let rotated = app
        .owner()
        .rotate_api_key(made["api_key"]["id"].as_str().unwrap())
        .await
        .assert_status(200);
    let after = app.client(rotated["secret"].as_str().unwrap());
    assert_eq!(authorize(&before, authorizing(&delegation), "pay-5").await.0, 401);
    assert_eq!(authorize(&after, authorizing(&delegation), "pay-5").await, (200, first));
}

/// A response stored before callers were recorded with keys is neither repeated nor decided again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_without_a_caller_is_never_repeated() {
    let (app, client, delegation) = demo().await;
    let (status, _) = authorize(&client, authorizing(&delegation), "pay-6").await;
    assert_eq!(status, 200);
    let mut db = app.database.owner().await;
    let old = diesel::sql_query("UPDATE idempotency_keys SET caller = ''");
    diesel_async::RunQueryDsl::execute(old, &mut db).await.unwrap();
    let stranger = app.client(&app.api_key("svc:tenant:acme", &["runtime:write"]).await);
    for who in [&client, &stranger] {
        let (status, answer) = authorize(who, authorizing(&delegation), "pay-6").await;
        assert_eq!((status, &answer["error"]), (422, &"idempotency_key_reused".into()));
    }
    let day =
        diesel::sql_query("UPDATE idempotency_keys SET created_at = created_at - interval '25 h'");
    diesel_async::RunQueryDsl::execute(day, &mut db).await.unwrap();
    assert_eq!(authorize(&client, authorizing(&delegation), "pay-6").await.0, 200);
}
