//! Holding and approving: eligible approvers, the
//! number required, and the single allow that results.

use authority_process::clock::Clock;
use chrono::TimeDelta;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::demo;
use crate::{
    evidence::acts_and_reports::salted,
    support::{
        Answered, Client, Members, Plain, TENANT, TestApp, Wishes, asking, new_policy,
        new_principal, new_purpose, new_tenant, nothing, only,
    },
};

/// Requests a payment that is held, and returns the response.
async fn held(client: &Client, amount: f64) -> Value {
    let (status, answer) = client.evaluate(asking(amount, "DE")).await;
    assert_eq!((status, answer["decision"].text()), (200, "require_approval"), "{answer:#}");
    answer
}

#[track_caller]
fn approval(held: &Value) -> String {
    held["approval_id"].as_str().unwrap().to_owned()
}

async fn act(client: &Client, id: &str, verb: &str, body: Value) -> (u16, Value) {
    let (status, answer) = client.act_on_approval(id, verb, body).await;
    (status, if status == 200 { answer["approval"].clone() } else { answer })
}

async fn state(app: &TestApp, id: &str) -> Value {
    app.owner().get_approval(id).await.1["approval"].clone()
}

fn citing(amount: f64, id: &str) -> Value {
    asking(amount, "DE").with("approval_id", id)
}

/// Creates a policy with this text, which holds every action for two approvers.
async fn two_people(app: &TestApp, cedar: &str) {
    let policy = new_policy("internal", cedar).with("name", "Two people");
    app.owner().create_policy(policy).await.assert_status(201);
}

const FOUR_EYES: &str = "@id(\"four-eyes\")\n@reason(\"approval_threshold_breach\")\n\
    @decision(\"require_approval\")\n@approvals(\"2\")\nforbid (principal, action, resource);\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_question_is_allowed_once() {
    let (app, client, _) = demo().await;
    let first = held(&client, 25_000.0).await;
    let id = approval(&first);
    let approver = app.person(TENANT, "approver", "ann@example.org");
    let (status, found) = approver.list_approvals("state=pending").await;
    assert_eq!((status, found["approvals"][0]["id"].text()), (200, id.as_str()), "{found:#}");
    let (status, approved) = act(&approver, &id, "approve", only("comment", "checked")).await;
    assert_eq!((status, approved["state"].text()), (200, "approved"), "{approved:#}");
    let said = &approved["acts"][0];
    assert_eq!((said["role"].text(), said["comment"].text()), ("approver", "checked"));
    proven(&app, &approved);
    // The approval is not valid for another request or another agent.
    let (_, other) = client.evaluate(citing(25_001.0, &id)).await;
    assert_eq!(other["decision"], "require_approval", "{other:#}");
    let calls = (0..16).map(|_| client.evaluate(citing(25_000.0, &id)));
    let answers = join_all(calls).await;
    let allowed: Vec<_> = answers.iter().filter(|(_, a)| a["decision"] == "allow").collect();
    assert_eq!(allowed.len(), 1, "{answers:#?}");
    let used = state(&app, &id).await;
    assert_eq!((used["state"].text(), &used["used_by"]), ("used", &allowed[0].1["decision_id"]));
    let held_id = first["decision_id"].as_str().unwrap();
    let (_, shown) = client.get_decision(held_id).await;
    assert_eq!(shown["approval_state"], "used");
    let (status, late) = app.owner().approve_approval(&id).await;
    assert_eq!((status, late["error"].text()), (409, "record_is_final"), "{late:#}");
}

/// Checks each act's signature by the service, which covers the text that is shown.
#[track_caller]
fn proven(app: &TestApp, approval: &Value) {
    use base64::{Engine, engine::general_purpose::STANDARD};
    for act in approval["acts"].as_array().unwrap() {
        let text = act["record"].as_str().unwrap();
        let signature = STANDARD.decode(act["signature"].as_str().unwrap()).unwrap();
        let kid = act["kid"].as_str().unwrap();
        app.app.keys.verify(kid, text.as_bytes(), &signature).unwrap();
        let said: Value = serde_json::from_str(text).unwrap();
        let by = salted(&act["by_salt"], &act["by"]);
        assert_eq!((&said["about"], &said["by_digest"]), (&approval["id"], &by));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_spend_an_approval_once() {
    let (app, client, _) = demo().await;
    let beside = app.beside(Wishes::default()).await;
    let id = approval(&held(&client, 30_000.0).await);
    let ann = app.person(TENANT, "approver", "ann@example.org");
    assert_eq!(act(&ann, &id, "approve", nothing()).await.0, 200);
    let there = beside.client(&client.token);
    let calls = (0..40).map(|n| {
        let node = if n % 2 == 0 { &client } else { &there };
        node.evaluate(citing(30_000.0, &id))
    });
    let answers = join_all(calls).await;
    assert!(answers.iter().all(|(status, _)| *status == 200), "{answers:#?}");
    let allowed = answers.iter().filter(|(_, answer)| answer["decision"] == "allow").count();
    assert_eq!(allowed, 1, "{answers:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_may_not_approve_cannot() {
    let (app, client, _) = demo().await;
    let id = approval(&held(&client, 25_000.0).await);
    let path = format!("/api/v1/app/approvals/{id}/approve");
    // None of these may approve: an API key, a user without the role, another tenant's approver, a
    // caller without credential.
    assert_eq!(client.post(&path, nothing()).await.0, 403);
    let member = app.person(TENANT, "member", "mo@example.org");
    assert_eq!(member.post(&path, nothing()).await.0, 403);
    let stranger = app.person("svc:tenant:other", "approver", "eve@example.org");
    assert!([403, 404].contains(&stranger.post(&path, nothing()).await.0));
    assert_eq!(app.client("").post(&path, nothing()).await.0, 401);
    // Nor may the human who owns the agent.
    let person = new_principal("human", "Owner").with("external_subject", "dev|boss@example.org");
    let (_, made) = app.owner().create_principal(person).await;
    let agent = "svc:agent:acme:invoice-bot";
    app.owner()
        .update_principal(agent, only("owner_principal_id", &made["principal"]["id"]))
        .await
        .assert_status(200);
    let boss = app.person(TENANT, "approver", "boss@example.org");
    let (status, refused) = boss.post(&path, nothing()).await;
    assert_eq!((status, refused["error"].text()), (409, "approver_not_eligible"), "{refused:#}");
    assert_eq!(state(&app, &id).await["given"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_are_two_different_people() {
    let (app, client, _) = demo().await;
    two_people(&app, FOUR_EYES).await;
    let id = approval(&held(&client, 25_000.0).await);
    let ann = app.person(TENANT, "approver", "ann@example.org");
    let (_, once) = act(&ann, &id, "approve", nothing()).await;
    assert_eq!(
        (once["state"].text(), once["given"].number(), once["needed"].number()),
        ("pending", 1, 2)
    );
    let (status, again) = act(&ann, &id, "approve", nothing()).await;
    assert_eq!((status, again["error"].text()), (409, "approver_not_eligible"));
    let (status, no) = act(&ann, &id, "decline", only("reason", "changed my mind")).await;
    assert_eq!((status, no["error"].text()), (409, "approver_not_eligible"));
    // Two people approve at the same time. Only one person can be the second approver.
    let (bob, eve) = (
        app.person(TENANT, "legal", "bob@example.org"),
        app.person(TENANT, "admin", "eve@example.org"),
    );
    let ((one, _), (other, _)) =
        tokio::join!(act(&bob, &id, "approve", nothing()), act(&eve, &id, "approve", nothing()));
    assert_eq!([one.min(other), one.max(other)], [200, 409]);
    assert_eq!(state(&app, &id).await["state"], "approved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_no_ends_it_and_asking_again_opens_none() {
    let (app, client, _) = demo().await;
    let id = approval(&held(&client, 25_000.0).await);
    let ann = app.person(TENANT, "approver", "ann@example.org");
    assert_eq!(act(&ann, &id, "decline", nothing()).await.0, 400, "a reason is required");
    let (_, declined) = act(&ann, &id, "decline", only("reason", "too much")).await;
    assert_eq!((declined["state"].text(), declined["given"].number()), ("declined", 0));
    let (_, answer) = client.evaluate(citing(25_000.0, &id)).await;
    let found = (&answer["decision"], &answer["reason_code"], &answer["approval_id"]);
    assert_eq!(found, (&json!("deny"), &json!("approval_declined"), &Value::Null), "{answer:#}");
}

/// An action that was permitted when it was held may no longer be permitted at the last approval.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_of_what_is_no_longer_permitted_is_void() {
    let (app, client, delegation) = demo().await;
    let id = approval(&held(&client, 25_000.0).await);
    assert_eq!(app.owner().revoke_delegation(&delegation, Some("over")).await.0, 200);
    let ann = app.person(TENANT, "approver", "ann@example.org");
    let (_, void) = act(&ann, &id, "approve", nothing()).await;
    assert_eq!(void["state"], "void", "{void:#}");
}

/// The number of required approvers rises between the first approval and the last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn present_authority_may_ask_for_more_people() {
    let (app, client, _) = demo().await;
    let id = approval(&held(&client, 25_000.0).await);
    two_people(&app, FOUR_EYES).await;
    let ann = app.person(TENANT, "approver", "ann@example.org");
    let (_, more) = act(&ann, &id, "approve", nothing()).await;
    assert_eq!((more["state"].text(), more["needed"].number()), ("pending", 2), "{more:#}");
    let bob = app.person(TENANT, "approver", "bob@example.org");
    assert_eq!(act(&bob, &id, "approve", nothing()).await.1["state"], "approved");
}

/// Starts the demonstration tenant with a clock that only the test moves.
async fn standing_still() -> (Clock, TestApp, Client) {
    let clock = Clock::fixed(Clock::default().now());
    let app = TestApp::wished(Wishes { clock: clock.clone(), ..Wishes::default() }).await;
    let client = app.client(&app.demo().await.api_key);
    (clock, app, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_expires() {
    let (clock, app, client) = standing_still().await;
    let id = approval(&held(&client, 25_000.0).await);
    clock.advance(TimeDelta::hours(25));
    let ann = app.person(TENANT, "approver", "ann@example.org");
    act(&ann, &id, "approve", nothing()).await.assert_status(409);
    tokio::time::timeout(std::time::Duration::from_secs(30), async {
        let owner = app.owner_now();
        while owner.get_approval(&id).await.1["approval"]["state"] != "expired" {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    })
    .await
    .unwrap();
}

/// The approval is given in time but cited too late. The request is held again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_approval_does_not_count() {
    let (clock, app, client) = standing_still().await;
    let id = approval(&held(&client, 25_000.0).await);
    let ann = app.person(TENANT, "approver", "ann@example.org");
    assert_eq!(act(&ann, &id, "approve", nothing()).await.1["state"], "approved");
    clock.advance(TimeDelta::hours(25));
    let (status, late) = client.evaluate(citing(25_000.0, &id)).await;
    assert_eq!((status, late["decision"].text()), (200, "require_approval"), "{late:#}");
    assert_ne!(late["approval_id"], id);
}

/// Two approvers are not enough if legal review is required and neither has the legal role.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn legal_is_one_of_those_who_approve() {
    let (app, client, _) = demo().await;
    let ask = |cited: Option<&str>| {
        let mut ask = asking(100.0, "DE");
        ask["action_declaration"] = only("reversibility", "reversible");
        ask["action_risk_classification"] =
            json!({"risk_tier": "minimal", "required_oversight_mode": "two_person_with_legal"});
        if let Some(id) = cited {
            ask["approval_id"] = json!(id);
        }
        ask
    };
    let (_, held) = client.evaluate(ask(None)).await;
    assert_eq!(held["reason_code"], "oversight_required", "{held:#}");
    let id = approval(&held);
    let pending = state(&app, &id).await;
    assert_eq!((pending["needed"].number(), pending["roles"].texts()), (2, vec!["legal"]));
    for email in ["ann@example.org", "bob@example.org"] {
        let approver = app.person(TENANT, "approver", email);
        let (status, given) = act(&approver, &id, "approve", nothing()).await;
        assert_eq!((status, given["state"].text()), (200, "pending"), "{given:#}");
    }
    let (_, early) = client.evaluate(ask(Some(&id))).await;
    assert_eq!(early["decision"], "require_approval", "{early:#}");
    let legal = app.person(TENANT, "legal", "lea@example.org");
    assert_eq!(act(&legal, &id, "approve", nothing()).await.1["state"], "approved");
    let (_, allowed) = client.evaluate(ask(Some(&id))).await;
    assert_eq!(allowed["decision"], "allow", "{allowed:#}");
}

/// An approval belongs to its tenant: cited elsewhere it has no effect and is not used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tenants_approval_serves_nothing() {
    let (app, client, _) = demo().await;
    let id = approval(&held(&client, 25_000.0).await);
    let ann = app.person(TENANT, "approver", "ann@example.org");
    assert_eq!(act(&ann, &id, "approve", nothing()).await.1["state"], "approved");
    let (owner, other) = (app.owner(), "svc:tenant:other");
    owner.create_tenant(new_tenant("Other", "other")).await.assert_made("tenant");
    let principal = |class: &str| {
        let mut body = new_principal(class, class).with("tenant_id", other);
        if class == "agent" {
            body["name"] = json!(class);
        }
        body
    };
    let boss = owner.create_principal(principal("human")).await.assert_made("principal");
    let bot = owner.create_principal(principal("agent")).await.assert_made("principal");
    let terms = json!({"tenant_id": other, "delegator_id": boss, "delegate_id": bot,
                       "actions": ["payment.execute"]});
    owner.create_delegation(terms).await.assert_made("delegation");
    let purpose = new_purpose("invoice-settlement", "Invoices", &["payment.execute"])
        .with("tenant_id", other);
    owner.create_purpose(purpose).await.assert_made("purpose");
    let stranger = app.client(&app.api_key(other, &["runtime:write"]).await);
    let ask = citing(25_000.0, &id)
        .with("subject", &bot)
        .with("action_declaration", only("reversibility", "reversible"))
        .with(
            "action_risk_classification",
            json!({"risk_tier": "minimal", "required_oversight_mode": "single_approver"}),
        );
    let (status, answer) = stranger.evaluate(ask).await;
    assert_eq!((status, answer["decision"].text()), (200, "require_approval"), "{answer:#}");
    assert_ne!(answer["approval_id"], id);
    assert_eq!(state(&app, &id).await["state"], "approved", "not spent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standing_approval_serves_one_delegation() {
    let (app, client, delegation) = demo().await;
    let ask = asking(100.0, "DE").with("delegation_id", &delegation).with("action_declaration", json!({"effect_class": "financial", "reversibility": "irreversible", "rollback_available": false}))
        .with("action_risk_classification", json!({"risk_tier": "high", "required_oversight_mode": "two_person"}));
    let asked = async || client.evaluate(ask.clone()).await.1;
    let before = asked().await;
    assert_eq!(before["reason_code"], "oversight_required", "{before:#}");
    let path = format!("/api/v1/app/delegations/{delegation}/approve");
    for (email, decision) in [("ann@example.org", "require_approval"), ("bob@example.org", "allow")]
    {
        app.person(TENANT, "approver", email)
            .post(&path, only("comment", "all year"))
            .await
            .assert_status(200);
        assert_eq!(asked().await["decision"], decision);
    }
    let (status, twice) =
        app.person(TENANT, "approver", "bob@example.org").post(&path, nothing()).await;
    assert_eq!((status, twice["error"].text()), (409, "approver_not_eligible"));
    assert_eq!(client.post(&path, nothing()).await.0, 403, "an API key can't do this");
}
