//! The impact of a stop: delegations, agents, requests and permissions, counted by the database.

use serde_json::{Value, json};

use super::{asking, demo};
use crate::support::{AGENT, Answered, Client, Plain, TENANT, TestApp, new_stop, new_tenant, only};

const SUPPORT: &str = "svc:agent:acme:support-bot";

async fn impact(client: &Client, query: &str) -> Value {
    let (status, found) = client.get(&format!("/api/v1/stop-impact?{query}")).await;
    assert_eq!(status, 200, "{query}: {found:#}");
    found
}

async fn decided(client: &Client, amount: f64) -> Value {
    client.evaluate(asking(amount, "DE")).await.assert_status(200)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_stop_counts_its_requests_and_permissions() {
    let (app, client, delegation) = demo().await;
    let owner = app.owner();
    let before = impact(&owner, &format!("subject_id={AGENT}")).await;
    assert_eq!(before["delegations"][0]["id"], delegation);
    assert_eq!((before["delegation_total"].number(), before["agent_total"].number()), (1, 1));
    assert_eq!(
        (before["decisions_counted"].as_bool(), before["valid_permissions"].number()),
        (Some(true), 0)
    );
    let allowed = decided(&client, 10.0).await["decision_id"].clone();
    for amount in [25_000.0, 26_000.0] {
        assert_eq!(decided(&client, amount).await["decision"], "require_approval");
    }
    for query in [
        format!("subject_id={AGENT}"),
        format!("delegation_id={delegation}"),
        format!("tenant_id={TENANT}&actions=payment.*"),
        format!("tenant_id={TENANT}&actions=refund.*&actions=payment.execute"),
        format!("tenant_id={TENANT}"),
    ] {
        let found = impact(&owner, &query).await;
        assert_eq!(found["pending_approvals"], 2, "{query}: {found:#}");
        assert_eq!(found["approved_approvals"], 0, "{query}");
        assert_eq!(found["valid_permissions"], 1, "{query}");
        let permission = &found["permissions"][0];
        assert_eq!(permission["decision_id"], allowed, "{query}");
        assert_eq!((permission["agent_id"].text(), &permission["outcome"]), (AGENT, &Value::Null));
        let agent = &found["agents"][0];
        assert_eq!(agent["id"], AGENT, "{query}: {found:#}");
        for (member, count) in [
            ("pending_approvals", 2),
            ("approved_approvals", 0),
            ("valid_permissions", 1),
            ("unreported_permissions", 1),
            ("recent_decisions", 3),
            ("refusals", 0),
        ] {
            assert_eq!(agent[member], count, "{query}: {member}");
        }
    }
    // Other actions are not concerned, although the delegation permits them.
    let found = impact(&owner, &format!("subject_id={AGENT}&actions=invoice.*")).await;
    assert_eq!((found["pending_approvals"].number(), found["valid_permissions"].number()), (0, 0));
    assert_eq!(
        (found["delegation_total"].number(), found["agents"][0]["recent_decisions"].number()),
        (1, 0)
    );
    let none = impact(&owner, &format!("tenant_id={TENANT}&actions=refund.*")).await;
    assert_eq!((&none["agents"], none["delegation_total"].number()), (&json!([]), 0));
    // The report of a permission is shown with it.
    client
        .report_decision(allowed.as_str().unwrap(), only("outcome", "executed"))
        .await
        .assert_status(200);
    let found = impact(&owner, &format!("subject_id={AGENT}")).await;
    assert_eq!(found["permissions"][0]["outcome"], "executed");
    assert_eq!(found["agents"][0]["unreported_permissions"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_are_counted_from_the_stop_to_its_release() {
    let (app, client, _) = demo().await;
    let owner = app.owner();
    decided(&client, 10.0).await;
    let (_, made) = owner.create_stop_signal(new_stop(AGENT, "pays twice")).await;
    let signal = &made["stop_signal"];
    let at = signal["created_at"].as_str().unwrap();
    for _ in 0..3 {
        assert_eq!(decided(&client, 10.0).await["reason_code"], "actor_stopped");
    }
    let lift = format!("/api/v1/stop-signals/{}/lift", signal["id"].as_str().unwrap());
    let (status, lifted) = owner.post(&lift, only("reason", "repaired")).await;
    assert_eq!((status, lifted["stop_signal"]["lift_reason"].text()), (200, "repaired"));
    let until = lifted["stop_signal"]["updated_at"].as_str().unwrap();
    decided(&client, 10.0).await;
    let found = impact(&owner, &format!("subject_id={AGENT}&at={at}&until={until}")).await;
    let agent = &found["agents"][0];
    assert_eq!(
        (agent["refusals"].number(), agent["recent_decisions"].number()),
        (3, 1),
        "{found:#}"
    );
    assert_eq!(agent["valid_permissions"], 1, "{found:#}");
    assert!(agent["last_refused_at"].is_string(), "{found:#}");
}

/// Another tenant's records and counts are not visible, and its principals are not found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_impact_stays_within_the_tenant() {
    let (app, client, delegation) = demo().await;
    decided(&client, 10.0).await;
    let other = new_tenant("Other", "other");
    assert_eq!(app.owner().create_tenant(other).await.0, 201);
    let path = "/api/v1/app/stop-impact";
    let stranger = app.client(&app.member_token("svc:tenant:other", "admin"));
    for (query, status) in [
        (format!("?subject_id={AGENT}"), 404),
        (format!("?delegation_id={delegation}"), 404),
        (format!("?tenant_id={TENANT}"), 400),
    ] {
        let (found, body) = stranger.get(&format!("{path}{query}")).await;
        assert_eq!(found, status, "{query}: {body:#}");
    }
    let own = stranger.get(&format!("{path}?actions=payment.*")).await.assert_status(200);
    assert_eq!((&own["agents"], own["delegation_total"].number()), (&json!([]), 0), "{own:#}");
    assert_eq!(
        (own["valid_permissions"].number(), &own["permissions"]),
        (0, &json!([])),
        "{own:#}"
    );
    let admin = app.client(&app.member_token(TENANT, "admin"));
    let (status, own) = admin.get(&format!("{path}?actions=payment.*")).await;
    assert_eq!((status, own["agents"][0]["id"].text()), (200, AGENT), "{own:#}");
    for role in ["approver", "legal", "viewer"] {
        let reader = app.client(&app.member_token(TENANT, role));
        assert_eq!(reader.get(path).await.0, 403, "{role}");
    }
    // The owner must name a tenant, or a record of it.
    let (status, refused) = app.owner().get_stop_impact("").await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "tenant_id"));
    let both = format!("subject_id={AGENT}&tenant_id=svc:tenant:other");
    assert_eq!(app.owner().get_stop_impact(&both).await.0, 400);
}

/// The totals do not depend on the limit of the lists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn totals_are_whole() {
    let (app, _, _) = demo().await;
    let mut db = app.database.owner().await;
    diesel_async::SimpleAsyncConnection::batch_execute(
        &mut db,
        "INSERT INTO principals (id, tenant_id, state, principal_class, display_name, name, created_at, created_by, \
         updated_at) SELECT 'svc:agent:acme:many-' || n, 'svc:tenant:acme', 'active', 'agent', 'Many ' || n, \
         'many-' || n, now(), 'test', now() FROM generate_series(1, 130) AS n; \
         INSERT INTO delegations (id, tenant_id, state, delegator_id, delegate_id, actions, root_id, created_by) \
         SELECT 'svc:del:acme:' || lpad(to_hex(n), 32, '0'), 'svc:tenant:acme', 'active', 'svc:agent:acme:invoice-bot', \
         'svc:agent:acme:many-' || n, '{payment.execute}', 'svc:del:acme:' || lpad(to_hex(n), 32, '0'), 'test' \
         FROM generate_series(1, 130) AS n",
    )
    .await
    .unwrap();
    let found = impact(&app.owner(), &format!("subject_id={AGENT}")).await;
    assert_eq!((found["delegation_total"].number(), found["agent_total"].number()), (131, 131));
    let listed = |member: &str| found[member].as_array().unwrap().len();
    assert_eq!((listed("delegations"), listed("agents")), (100, 100));
    assert_eq!(found["agents"][0]["id"], AGENT);
    let cut = impact(&app.owner(), &format!("subject_id={AGENT}&limit=1")).await;
    assert_eq!((cut["delegation_total"].number(), cut["agent_total"].number()), (131, 131));
    assert_eq!(cut["agents"].as_array().unwrap().len(), 1);
    // A delegation that the principal does not hold is not concerned.
    let other = impact(&app.owner(), &format!("subject_id={SUPPORT}")).await;
    assert_eq!(other["agents"].as_array().unwrap().len(), 1, "{other:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_names_come_with_a_similar_name() {
    let app = TestApp::seeded().await;
    app.demo().await;
    let path = "/api/v1/app/unknown-names";
    let admin = app.client(&app.member_token(TENANT, "admin"));
    let query = "actions=payment.execute&actions=paymnt.execute&actions=calendar.book\
                 &purposes=invoice-settlement&purposes=invoice-setlement";
    let found = admin.get(&format!("{path}?{query}")).await.assert_status(200);
    let found = found["unknown_names"].as_array().unwrap();
    let found = found.iter().map(|one| (&one["kind"], &one["name"], &one["did_you_mean"]));
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            (&json!("action"), &json!("paymnt.execute"), &json!("payment.execute")),
            (&json!("action"), &json!("calendar.book"), &Value::Null),
            (&json!("purpose"), &json!("invoice-setlement"), &json!("invoice-settlement")),
        ]
    );
    // Another tenant does not know these names and does not see them.
    let other = new_tenant("Other", "other");
    assert_eq!(app.owner().create_tenant(other).await.0, 201);
    let stranger = app.client(&app.member_token("svc:tenant:other", "admin"));
    let (status, found) = stranger.get(&format!("{path}?actions=paymnt.execute")).await;
    assert_eq!((status, &found["unknown_names"][0]["did_you_mean"]), (200, &Value::Null));
    assert_eq!(stranger.get(&format!("{path}?tenant_id={TENANT}")).await.0, 400);
    for role in ["approver", "viewer"] {
        let reader = app.client(&app.member_token(TENANT, role));
        assert_eq!(reader.get(path).await.0, 403, "{role}");
    }
    let (status, refused) = app.owner().find_unknown_names("actions=a.b").await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "tenant_id"));
}
