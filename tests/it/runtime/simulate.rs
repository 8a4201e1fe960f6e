//! Simulation with other policies, other facts and other times, without storing data.

use std::time::Duration;

use authority_process::clock::Clock;
use chrono::TimeDelta;
use diesel::{QueryableByName, sql_types::Text};
use diesel_async::RunQueryDsl;
use serde_json::{Value, json};

use super::{asking, demo};
use crate::support::{
    Answered, Client, Members, Plain, SIMULATE_DECISION, TestApp, new_api_key, new_tenant, nothing,
    only,
};

pub(super) const TENANT: &str = "svc:tenant:acme";
const SIMULATE: &str = "/api/v1/decisions:simulate";
pub(super) const OVER_1000: &str = "@id(\"no-large-payments\")\nforbid (principal, action in \
    Svc::Action::\"payment\", resource)\nwhen { context.amount.greaterThan(decimal(\"1000.0\")) };";

/// Makes a decision and returns its id and the response.
pub(super) async fn decided(client: &Client, ask: Value) -> (String, Value) {
    let answer = client.evaluate_decision(ask).await.assert_status(200);
    (answer["decision_id"].as_str().unwrap().to_owned(), answer)
}

pub(super) async fn simulated(client: &Client, path: &str, body: Value) -> Value {
    let (status, answer) = client.post(path, body.clone()).await;
    assert_eq!(status, 200, "{body:#}\n{answer:#}");
    answer
}

#[track_caller]
pub(super) fn outcome(answer: &Value) -> (&str, &str) {
    (answer["decision"].as_str().unwrap(), answer["reason_code"].as_str().unwrap())
}

fn turned(answer: &Value) -> (&Value, &Value, &Value, &Value) {
    let change = &answer["smallest_change"];
    (&change["kind"], &change["member"], &change["value"], &change["id"])
}

/// Counts the rows of every table.
pub(super) async fn rows(app: &TestApp) -> Vec<String> {
    #[derive(QueryableByName)]
    struct Counted {
        #[diesel(sql_type = Text)]
        line: String,
    }
    let count = "SELECT c.relname || ' ' || (xpath('/row/n/text()', query_to_xml(format( \
                 'SELECT count(*) AS n FROM %I', c.relname), false, true, '')))[1]::text AS line \
                 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                 WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') ORDER BY 1";
    let mut db = app.database.owner().await;
    let mut before = Vec::new();
    // Events are numbered and users notified shortly
    // after the change. Wait until the counts are stable.
    loop {
        let counted: Vec<Counted> = diesel::sql_query(count).load(&mut db).await.unwrap();
        let lines: Vec<String> = counted.into_iter().map(|counted| counted.line).collect();
        if lines == before && lines.iter().any(|line| line == "event_outbox 0") {
            return lines;
        }
        before = lines;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_policy_is_tried_and_nothing_remains() {
    let (app, client, _) = demo().await;
    let (id, _) = decided(&client, asking(1200.0, "DE")).await;
    let before = rows(&app).await;
    assert!(before.iter().any(|line| line == "decisions 1"), "{before:?}");
    let body = json!({"decision_id": id, "candidate_policies": [{"cedar": OVER_1000}]});
    let admin = app.client(&app.member_token(TENANT, "admin"));
    for (who, path) in [
        (&app.owner(), SIMULATE),
        (&admin, "/api/v1/app/decisions:simulate"),
        (&client, SIMULATE_DECISION),
    ] {
        let answer = simulated(who, path, body.clone()).await;
        assert_eq!(outcome(&answer), ("deny", "policy_denied"), "{answer:#}");
        assert_eq!(outcome(&answer["before"]), ("allow_with_constraints", "permission_granted"));
        assert_eq!(answer["would_change"], true);
        let change = turned(&answer);
        let amount = (&json!("amount"), &json!("context.amount"), &json!("1000"), &Value::Null);
        assert_eq!(change, amount, "{answer:#}");
        assert_eq!(answer["stages"].as_array().unwrap().len(), 4);
    }
    // A simulated hold opens no approval request, and an idempotency key stores no response.
    let held = only("request", asking(25_000.0, "DE"));
    let keyed =
        client.call("POST", SIMULATE_DECISION, Some(held), &[("idempotency-key", "simulate-1")]);
    let (status, answer) = keyed.await;
    assert_eq!((status, answer["approvals_needed"]["count"].number()), (200, 1), "{answer:#}");
    assert_eq!(
        (answer["would_change"].as_bool(), &answer["smallest_change"]),
        (Some(false), &json!(null))
    );
    assert_eq!(answer["authority"]["kind"], "delegation");
    assert_eq!(rows(&app).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_facts_stay_what_they_were() {
    let (app, client, delegation) = demo().await;
    let (id, answer) = decided(&client, asking(1200.0, "DE")).await;
    assert_eq!(app.owner().revoke_delegation(&delegation, Some("over")).await.0, 200);
    let now = client.simulate_decision(only("decision_id", &id)).await.assert_status(200);
    assert_eq!(outcome(&now), ("deny", "delegation_revoked"), "{now:#}");
    let link = (&json!("link"), &json!("state"), &Value::Null, &json!(delegation));
    assert_eq!(turned(&now), link, "{now:#}");
    let recorded = json!({"decision_id": id, "against": "recorded"});
    let then = client.simulate_decision(recorded.clone()).await.assert_status(200);
    assert_eq!(outcome(&then), ("allow_with_constraints", "permission_granted"), "{then:#}");
    assert_eq!(then["would_change"], false);
    for member in ["evaluated_at", "valid_until", "authority_revision"] {
        assert_eq!(then[member], answer[member], "{member}");
    }
    let mut more = recorded.clone();
    more["changes"] = only("amount", 25_000);
    let held = client.simulate_decision(more.clone()).await.assert_status(200);
    assert_eq!(outcome(&held), ("require_approval", "approval_threshold_breach"), "{held:#}");
    more["changes"] = json!({"purpose": "customer-care", "tool_id": "x"});
    let (status, refused) = client.simulate_decision(more).await;
    let named = [&refused["details"][0]["field"], &refused["details"][1]["field"]];
    assert_eq!(status, 400, "{refused:#}");
    assert_eq!(named, [&json!("changes.purpose"), &json!("changes.tool_id")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_facts_and_times() {
    let (app, client, delegation) = demo().await;
    let (id, _) = decided(&client, asking(1200.0, "DE")).await;
    let with = async |changes: Value| {
        let body = json!({"decision_id": id, "changes": changes});
        client.simulate_decision(body).await.assert_status(200)
    };
    for (changes, decision, reason) in [
        (only("amount", 25_000), "require_approval", "approval_threshold_breach"),
        (
            json!({"amount": 25_000, "approved": true}),
            "allow_with_constraints",
            "permission_granted",
        ),
        (only("jurisdiction", "US"), "deny", "jurisdiction_unsupported"),
        (json!({"context": {"jurisdiction": null}}), "deny", "jurisdiction_unsupported"),
        (json!({"context": {"amount": 60_000}}), "deny", "constraint_exceeded"),
        (only("purpose", "customer-care"), "deny", "purpose_not_admitted"),
        (only("delegation_id", "svc:del:acme:0"), "deny", "delegation_unknown"),
        (
            json!({"action_risk_classification": {"risk_tier": "prohibited"}}),
            "deny",
            "risk_prohibited",
        ),
    ] {
        let answer = with(changes.clone()).await;
        assert_eq!(outcome(&answer), (decision, reason), "{changes}\n{answer:#}");
    }
    let told = async |changes: Value| {
        let answer = with(changes).await;
        let (kind, member, value, _) = turned(&answer);
        [kind, member, value].map(|part| part.as_str().unwrap_or_default().to_owned())
    };
    let places = told(only("jurisdiction", "US")).await;
    assert_eq!(places, ["jurisdiction", "context.jurisdiction", "DE"]);
    let amount = told(json!({"context": {"amount": 60_000}})).await;
    assert_eq!(amount, ["amount", "context.amount", "50000"]);
    let purpose = told(only("purpose", "customer-care")).await;
    assert_eq!(purpose, ["purpose", "purpose", "invoice-settlement"]);
    let unnamed = told(only("delegation_id", "svc:del:acme:0")).await;
    assert_eq!(unnamed, ["delegation", "delegation_id", delegation.as_str()]);
    // Uses a resource that no grant covers.
    let resource = json!({"tenant_id": TENANT, "kind": "ledger", "name": "Other"});
    let (_, made) = app.owner().create_resource(resource).await;
    let access = told(only("resource_id", &made["resource"]["id"])).await;
    assert_eq!(access, ["grant", "granted_access_to", "execute"]);
    // The delegation ends tomorrow, and the simulated time is the day after.
    let tomorrow = Clock::default().now() + TimeDelta::days(1);
    let narrow = only("expires_at", tomorrow.to_rfc3339());
    app.owner().narrow_delegation(&delegation, narrow).await.assert_status(200);
    let later = tomorrow + TimeDelta::days(1);
    let body = json!({"decision_id": id, "at": later.to_rfc3339()});
    let answer = client.simulate_decision(body).await.assert_status(200);
    assert_eq!(outcome(&answer), ("deny", "delegation_expired"), "{answer:#}");
    let (kind, member, _, link) = turned(&answer);
    assert_eq!((kind, member, link), (&json!("link"), &json!("expires_at"), &json!(delegation)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_are_read_and_never_counted() {
    let (app, client, delegation) = demo().await;
    let (_, first) = app.owner().get_delegation(&delegation).await;
    let first = &first["delegation"];
    let body = json!({"tenant_id": TENANT, "actions": ["payment.*"], "currency": "EUR",
        "delegator_id": first["delegator_id"], "delegate_id": first["delegate_id"],
        "max_total_amount": {"amount": "100", "window_seconds": 86400}});
    let (_, made) = app.owner().create_delegation(body).await;
    let ask = asking(60.0, "DE").with("delegation_id", &made["delegation"]["id"]);
    let body = only("request", &ask);
    for _ in 0..3 {
        let answer = client.simulate_decision(body.clone()).await.assert_status(200);
        assert_eq!(outcome(&answer), ("allow_with_constraints", "permission_granted"));
    }
    let (id, _) = decided(&client, ask.clone()).await;
    let answer = client.simulate_decision(body).await.assert_status(200);
    assert_eq!(outcome(&answer), ("deny", "constraint_exceeded"), "{answer:#}");
    assert_eq!(answer["smallest_change"]["value"], "40");
    let recorded = json!({"decision_id": id, "against": "recorded"});
    let then = client.simulate_decision(recorded).await.assert_status(200);
    assert_eq!(outcome(&then), ("allow_with_constraints", "permission_granted"), "{then:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_named() {
    let (app, client, _) = demo().await;
    let (id, _) = decided(&client, asking(1.0, "DE")).await;
    let bad = "forbid (principal, action, resource)\nwhen { context.amount > };";
    let stored = |more: Value| only("decision_id", &id).and(&more);
    let mut unsound = asking(1.0, "DE");
    unsound["context"]["amount"] = "much".into();
    for (body, member, problem) in [
        (nothing(), "decision_id", "`request`"),
        (stored(only("request", asking(1.0, "DE"))), "request", "one of them"),
        (json!({"request": asking(1.0, "DE"), "against": "recorded"}), "against", "decision_id"),
        (only("request", &unsound), "request.context.amount", "number"),
        (stored(json!({"changes": {"amount": 0.000_01}})), "changes.amount", "4 decimals"),
        (
            stored(json!({"changes": {"context": {"currency": "x"}}})),
            "changes.context.currency",
            "3 to 8 capital letters",
        ),
        (
            stored(json!({"candidate_policies": [{"cedar": OVER_1000}, {"cedar": bad}]})),
            "candidate_policies[1].cedar",
            "line 2, column 25",
        ),
        (
            stored(
                json!({"candidate_policies": [{"cedar": OVER_1000, "applies_to": ["*", "moon"]}]}),
            ),
            "candidate_policies[0].applies_to[1]",
            "not a target",
        ),
        (
            stored(json!({"candidate_policies": [{"cedar": OVER_1000, "policy_id": "nothing"}]})),
            "candidate_policies[0].policy_id",
            "not a policy",
        ),
        (stored(only("without_policies", ["nothing"])), "without_policies[0]", "not a policy"),
    ] {
        let (status, refused) = client.simulate_decision(body.clone()).await;
        let first = &refused["details"][0];
        assert_eq!((status, first["field"].text()), (400, member), "{body:#}\n{refused:#}");
        assert!(first["problem"].as_str().unwrap().contains(problem), "{refused:#}");
    }
    assert_eq!(client.simulate_decision(only("decision_id", "svc:decision:00")).await.0, 404);
    // Another tenant's key, a user without the role, a key bound to another agent.
    let body = new_tenant("Other", "other");
    assert_eq!(app.owner().create_tenant(body).await.0, 201);
    let stranger = app.client(&app.api_key("svc:tenant:other", &["runtime:read"]).await);
    assert_eq!(stranger.simulate_decision(stored(nothing())).await.0, 404);
    let viewer = app.client(&app.member_token(TENANT, "viewer"));
    assert_eq!(viewer.simulate_decision(stored(nothing())).await.0, 403);
    let bound = new_api_key("bound", &["runtime:read"])
        .with("principal_ids", ["svc:agent:acme:support-bot"]);
    let (_, key) = app.owner().create_api_key(bound).await;
    let bound = app.client(key["secret"].as_str().unwrap());
    for (body, wanted) in [
        (stored(nothing()), (404, "not_found")),
        (only("request", asking(1.0, "DE")), (403, "subject_not_permitted")),
    ] {
        let (status, refused) = bound.simulate_decision(body).await;
        assert_eq!((status, refused["error"].as_str().unwrap()), wanted);
    }
}

/// `explain` returns the smallest change that would permit a denied request. It changes neither the
/// record nor the response that is stored under the idempotency key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denial_explained_names_the_smallest_change() {
    let (_app, client, _) = demo().await;
    let mut ask = asking(60_000.0, "DE");
    let (_, plain) = decided(&client, ask.clone()).await;
    assert_eq!(
        (outcome(&plain).1, &plain["smallest_change"]),
        ("constraint_exceeded", &Value::Null)
    );
    ask["explain"] = true.into();
    let (id, answer) = decided(&client, ask.clone()).await;
    let change = json!({"kind": "amount", "member": "context.amount", "value": "50000", "id": null,
        "sentence": "ask for 50000 at most", "decision": "require_approval",
        "reason_code": "approval_threshold_breach", "further": []});
    assert_eq!(answer["smallest_change"], change, "{answer:#}");
    let (_, shown) = client.get_decision(&id).await;
    assert!(!shown["record"].to_string().contains("50000"), "{shown:#}");
    let keyed = || {
        let headers = &[("idempotency-key", "explain-1")];
        client.evaluate_with(ask.clone(), headers)
    };
    let first = keyed().await.1;
    assert_eq!(first["smallest_change"], change, "{first:#}");
    assert_eq!(keyed().await.1, first);
    let permitted = only("explain", true);
    let ask = asking(1.0, "DE").with("explain", &permitted["explain"]);
    assert_eq!(decided(&client, ask).await.1["smallest_change"], Value::Null);
}
