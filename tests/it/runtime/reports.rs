//! The outcome of a permitted decision: reported once, and signed.

use authority_process::clock::Clock;
use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{asking, demo};
use crate::support::{Answered, Client, Members, Plain, TENANT, new_api_key, new_tenant, only};

async fn decided(client: &Client, amount: f64, place: &str) -> String {
    let answer = client.evaluate(asking(amount, place)).await.assert_status(200);
    answer["decision_id"].as_str().unwrap().to_owned()
}

async fn report(client: &Client, id: &str, body: Value) -> (u16, Value) {
    client.report_decision(id, body).await
}

/// Returns the status, whether the response was repeated, and the raw body.
async fn keyed(client: &Client, id: &str, body: &Value, key: &str) -> (u16, bool, String) {
    let url = format!("{}/v1/decisions/{id}:report", client.base);
    let request = client.http.post(url).bearer_auth(&client.token).header("idempotency-key", key);
    let answer = request.json(body).send().await.unwrap();
    let replayed = answer.headers().get("idempotency-replayed").is_some_and(|yes| yes == "true");
    (answer.status().as_u16(), replayed, answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_is_signed_sealed_to_the_record_and_made_once() {
    let (app, client, _) = demo().await;
    let id = decided(&client, 10.0, "DE").await;
    let (_, before) = client.get_decision(&id).await;
    assert_eq!(before["report"], Value::Null);
    let body = json!({"outcome": "executed", "detail": "the bank took it"});
    let made = report(&client, &id, body.clone()).await.assert_status(200);
    assert_eq!((made["decision_id"].text(), &made["outcome"]), (id.as_str(), &body["outcome"]));
    let text = made["record"].as_str().unwrap();
    let signature = STANDARD.decode(made["signature"]["value"].as_str().unwrap()).unwrap();
    let kid = made["signature"]["kid"].as_str().unwrap();
    app.app.keys.verify(kid, text.as_bytes(), &signature).unwrap();
    let said: Value = serde_json::from_str(text).unwrap();
    let (_, after) = client.get_decision(&id).await;
    let by = said["reported_by"].as_str().unwrap();
    assert!(by.starts_with("svc:api_key:"), "{by}");
    let wanted = json!({
        "kind": "svc.decision.report.v1", "decision_id": id, "tenant_id": TENANT,
        "record_digest": after["evidence_pack"]["record_digest"], "outcome": "executed",
        "at": made["at"], "detail": "the bank took it", "reported_by": by,
    });
    assert_eq!(said, wanted);
    assert_eq!(text.as_bytes(), serde_json_canonicalizer::to_vec(&said).unwrap());
    let shown = json!({"outcome": "executed", "at": made["at"], "detail": "the bank took it"});
    assert_eq!(after["report"], shown);
    let (status, again) = report(&client, &id, body).await;
    assert_eq!((status, again["error"].text()), (409, "already_exists"), "{again:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_key_the_first_answer_comes_again() {
    let (app, client, _) = demo().await;
    let id = decided(&client, 10.0, "DE").await;
    let body = only("outcome", "failed");
    let calls = (0..16).map(|_| keyed(&client, &id, &body, "report-1"));
    let answers = join_all(calls).await;
    let (_, _, first) = &answers[0];
    assert!(answers.iter().all(|(status, _, text)| *status == 200 && text == first), "{answers:?}");
    assert_eq!(answers.iter().filter(|(_, replayed, _)| !replayed).count(), 1);
    let (status, _, text) = keyed(&client, &id, &only("outcome", "executed"), "report-1").await;
    assert_eq!(status, 422, "{text}");
    // Under another key it is a second report. Another caller's key is a different key.
    assert_eq!(keyed(&client, &id, &body, "report-2").await.0, 409);
    let other = app.client(&app.api_key(TENANT, &["runtime:write"]).await);
    assert_eq!(keyed(&other, &id, &body, "report-1").await.0, 409);
    let next = decided(&client, 11.0, "DE").await;
    assert_eq!(keyed(&client, &next, &body, "report-1").await.0, 422);
    assert_eq!(keyed(&client, &next, &body, "report-3").await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_that_cannot_have_an_outcome_gets_none() {
    let (_app, client, _) = demo().await;
    for (amount, place, decision) in [(25_000.0, "DE", "require_approval"), (10.0, "US", "deny")] {
        let id = decided(&client, amount, place).await;
        let (status, refused) = report(&client, &id, only("outcome", "executed")).await;
        assert_eq!((status, refused["error"].text()), (409, "transition_not_allowed"));
        assert!(refused["message"].as_str().unwrap().contains(decision), "{refused:#}");
    }
    let id = decided(&client, 10.0, "DE").await;
    for (at, problem) in
        [("2100-01-01T00:00:00Z", "future"), ("2020-01-01T00:00:00Z", "before the decision")]
    {
        let (status, refused) = report(&client, &id, json!({"outcome": "failed", "at": at})).await;
        assert_eq!((status, refused["details"][0]["field"].text()), (400, "at"), "{refused:#}");
        assert!(refused["message"].as_str().unwrap().contains(problem), "{refused:#}");
    }
    let (status, refused) = report(&client, &id, only("outcome", "forgotten")).await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "outcome"));
    let now = Clock::default().now().to_rfc3339();
    report(&client, &id, json!({"outcome": "abandoned", "at": now})).await.assert_status(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_callers_that_act_for_the_subject_report() {
    let (app, client, _) = demo().await;
    let id = decided(&client, 10.0, "DE").await;
    let body = || only("outcome", "executed");
    let other = new_tenant("Other", "other");
    assert_eq!(app.owner().create_tenant(other).await.0, 201);
    let stranger = app.client(&app.api_key("svc:tenant:other", &["runtime:write"]).await);
    assert_eq!(report(&stranger, &id, body()).await.0, 404);
    assert_eq!(report(&client, "svc:decision:0", body()).await.0, 404);
    let reader = app.client(&app.api_key(TENANT, &["runtime:read"]).await);
    assert_eq!(report(&reader, &id, body()).await.0, 403);
    let bound = async |principal: &str| {
        let key = new_api_key("bound", &["runtime:write"]).with("principal_ids", [principal]);
        let (_, made) = app.owner().create_api_key(key).await;
        app.client(made["secret"].as_str().unwrap())
    };
    let support = bound("svc:agent:acme:support-bot").await;
    // A key bound to another agent gets the decision as not found.
    let (status, refused) = report(&support, &id, body()).await;
    assert_eq!((status, refused["error"].text()), (404, "not_found"));
    let invoice = bound("svc:agent:acme:invoice-bot").await;
    assert_eq!(report(&invoice, &id, body()).await.0, 200);
}

/// A key without a binding reports for every agent of its tenant, a bound key only for its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_key_reports_only_for_its_own_agents() {
    let (app, client, _) = demo().await;
    let bound = async |principal: &str| {
        let key = new_api_key("bound", &["runtime:write"]).with("principal_ids", [principal]);
        let made = app.owner().create_api_key(key).await.assert_status(201);
        app.client(made["secret"].as_str().unwrap())
    };
    let (own, other) =
        (bound("svc:agent:acme:invoice-bot").await, bound("svc:agent:acme:support-bot").await);
    let unbound = app.client(&app.api_key(TENANT, &["runtime:write"]).await);
    let reader = app.client(&app.api_key(TENANT, &["runtime:read"]).await);
    let admin = app.client(&app.member_token(TENANT, "admin"));
    let body = only("outcome", "failed");
    for reporter in [&own, &unbound] {
        let id = decided(&client, 10.0, "DE").await;
        for (refused, status) in [(&other, 404), (&reader, 403), (&admin, 403)] {
            assert_eq!(report(refused, &id, body.clone()).await.0, status);
        }
        report(reporter, &id, body.clone()).await.assert_status(200);
        assert_eq!(report(&own, &id, body.clone()).await.0, 409);
    }
}
