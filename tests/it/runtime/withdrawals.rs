//! Withdrawing an approved request, and how long approval requests wait.

use serde_json::{Value, json};

use super::{
    demo,
    questions::{TENANT, act, approver, held, read},
};
use crate::support::{
    Answered, Client, Members, Plain, TestApp, asking, new_delegation, new_principal, nothing, only,
};

fn citing(amount: f64, id: &str) -> Value {
    asking(amount, "DE").with("approval_id", id)
}

fn why() -> Value {
    only("reason", "the supplier is another")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_request_can_be_withdrawn() {
    let (app, client, _) = demo().await;
    // This person could not have approved the request, because they own the agent.
    let person = new_principal("human", "Boss").with("external_subject", "dev|boss@example.org");
    let (_, made) = app.owner().create_principal(person).await;
    let owned = only("owner_principal_id", &made["principal"]["id"]);
    assert_eq!(app.owner().update_principal("svc:agent:acme:invoice-bot", owned).await.0, 200);
    let boss = app.person(TENANT, "approver", "boss@example.org");
    let ann = approver(&app);
    for (round, who) in [&boss, &ann].into_iter().enumerate() {
        let amount = [25_000.0, 25_001.0][round];
        let id = held(&client, &asking(amount, "DE")).await;
        let (status, early) = act(who, &id, "withdraw", why()).await;
        assert_eq!((status, early["error"].text()), (409, "transition_not_allowed"), "{early:#}");
        assert_eq!(act(&ann, &id, "approve", nothing()).await.1["state"], "approved");
        assert_eq!(act(who, &id, "withdraw", nothing()).await.0, 400, "a reason is required");
        let (status, void) = act(who, &id, "withdraw", why()).await;
        assert_eq!((status, void["state"].text()), (200, "void"), "{void:#}");
        assert!(void["request"].is_object(), "{void:#}");
        let last = void["acts"].as_array().unwrap().last().unwrap();
        assert_eq!((last["verdict"].text(), &last["comment"]), ("withdraw", &why()["reason"]));
        let signed: Value = serde_json::from_str(last["record"].as_str().unwrap()).unwrap();
        assert_eq!((&signed["about"], &signed["question"]), (&json!(id), &void["request_digest"]));
        let (_, late) = client.evaluate(citing(amount, &id)).await;
        assert_eq!(late["decision"], "require_approval", "{late:#}");
        assert_ne!(late["approval_id"], json!(id));
        let (status, twice) = act(who, &id, "withdraw", why()).await;
        assert_eq!((status, twice["error"].text()), (409, "record_is_final"), "{twice:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_may_not_act_cannot_withdraw() {
    let (app, client, _) = demo().await;
    let id = held(&client, &asking(25_000.0, "DE")).await;
    assert_eq!(act(&approver(&app), &id, "approve", nothing()).await.0, 200);
    let auditor = app.person(TENANT, "auditor", "amy@example.org");
    for who in [&client, &auditor] {
        assert_eq!(act(who, &id, "withdraw", why()).await.0, 403);
    }
    let stranger = app.person("svc:tenant:other", "approver", "eve@example.org");
    assert!([403, 404].contains(&act(&stranger, &id, "withdraw", why()).await.0));
    let path = format!("/api/v1/approvals/{id}/withdraw");
    assert_eq!(approver(&app).post(&path, why()).await.0, 403, "not the installation's owner");
    let (status, void) = app.owner().post(&path, why()).await;
    assert_eq!((status, void["approval"]["state"].text()), (200, "void"), "{void:#}");
}

/// An agent uses an approval while a person withdraws it. Only one call succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_withdrawal_and_a_claim_do_not_both_win() {
    let (app, client, _) = demo().await;
    let ann = approver(&app);
    let mut withdrawn = 0;
    for round in 0..30_u64 {
        let amount = 25_000.0 + f64::from(u32::try_from(round).unwrap());
        let id = held(&client, &asking(amount, "DE")).await;
        assert_eq!(act(&ann, &id, "approve", nothing()).await.1["state"], "approved");
        // A withdrawal is faster than a use. Some withdrawals start a few milliseconds later, to let
        // some uses win.
        let later = std::time::Duration::from_millis(round % 6);
        let withdraw = async {
            tokio::time::sleep(later).await;
            act(&ann, &id, "withdraw", why()).await
        };
        let ((status, void), (_, answer)) =
            tokio::join!(withdraw, client.evaluate(citing(amount, &id)),);
        let allowed = answer["decision"] == "allow";
        assert_eq!(status, if allowed { 409 } else { 200 }, "{void:#}\n{answer:#}");
        let left = read(&ann, &id).await;
        assert_eq!(left["state"], if allowed { "used" } else { "void" });
        assert_eq!(left["used_by"].is_string(), allowed);
        withdrawn += i32::from(!allowed);
    }
    assert!(withdrawn < 30, "the approval was never used first");
}

/// Creates a delegation that requires a standing approval for all its actions.
async fn standing(app: &TestApp) -> String {
    let body = new_delegation(
        "svc:agent:acme:invoice-bot",
        "svc:agent:acme:support-bot",
        &["ticket.close"],
    )
    .with("needs_standing_approval", true);
    let made = app.owner().create_delegation(body).await.assert_status(201);
    made["delegation"]["id"].as_str().unwrap().to_owned()
}

async fn closes(client: &Client, delegation: &str) -> Value {
    let ask = json!({"subject": "svc:agent:acme:support-bot", "action": "ticket.close",
                     "delegation_id": delegation, "context": {}});
    client.evaluate_decision(ask).await.1["decision"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standing_approval_can_be_withdrawn_and_given_again() {
    let (app, client, _) = demo().await;
    let id = standing(&app).await;
    let path = |verb: &str| format!("/api/v1/app/delegations/{id}/{verb}");
    let ann = approver(&app);
    let (status, early) = ann.post(&path("withdraw"), why()).await;
    assert_eq!((status, early["error"].text()), (409, "transition_not_allowed"), "{early:#}");
    for _ in 0..2 {
        assert_eq!(closes(&client, &id).await, "require_approval");
        ann.post(&path("approve"), nothing()).await.assert_status(200);
        assert_eq!(closes(&client, &id).await, "allow_with_constraints");
        assert_eq!(ann.post(&path("withdraw"), nothing()).await.0, 400, "a reason is required");
        let (status, withdrawn) = ann.post(&path("withdraw"), why()).await;
        assert_eq!((status, &withdrawn["delegation"]["standing"]), (200, &json!([])));
    }
    assert_eq!(closes(&client, &id).await, "require_approval");
    let bob = app.person(TENANT, "legal", "bob@example.org");
    assert_eq!(bob.post(&path("approve"), nothing()).await.0, 200);
    let admin = format!("/api/v1/delegations/{id}/withdraw");
    assert_eq!(bob.post(&admin, why()).await.0, 403, "not the installation's owner");
    assert_eq!(app.owner().post(&admin, why()).await.0, 200);
    assert_eq!(closes(&client, &id).await, "require_approval");
}

/// The tenant sets how long an approval request waits for approvals.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_waits_as_long_as_its_tenant_says() {
    let (app, client, _) = demo().await;
    let (owner, ann) = (app.owner(), approver(&app));
    let tenant = "/api/v1/tenants/acme";
    for (number, (span, seconds)) in
        [(Value::Null, 86_400), (json!(60), 60), (json!(2_592_000), 2_592_000)]
            .into_iter()
            .enumerate()
    {
        let (status, changed) = owner.patch(tenant, only("approval_ttl_seconds", &span)).await;
        assert_eq!((status, &changed["tenant"]["approval_ttl_seconds"]), (200, &span));
        let amount = 25_000.0 + [0.0, 1.0, 2.0][number];
        let shown = read(&ann, &held(&client, &asking(amount, "DE")).await).await;
        let at = |member: &str| {
            let text = shown[member].as_str().unwrap();
            text.parse::<chrono::DateTime<chrono::Utc>>().unwrap()
        };
        let waits = (at("expires_at") - at("created_at")).num_seconds();
        assert_eq!(waits, seconds, "{shown:#}");
    }
    for wrong in [json!(59), json!(2_592_001), json!(-1), json!("60s")] {
        owner.patch(tenant, only("approval_ttl_seconds", &wrong)).await.assert_status(400);
    }
}
