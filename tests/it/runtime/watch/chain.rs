//! Revoking a delegation ends all delegations below it. Tests three levels, each with a request.

use serde_json::{Value, json};

use super::{AGENT, Lines, TENANT, asking, demo};
use crate::support::{Answered, Client, Members, TestApp, new_agent, new_uses};

const SECOND: &str = "svc:agent:acme:second-bot";
const THIRD: &str = "svc:agent:acme:third-bot";

async fn agent(app: &TestApp, name: &str) {
    app.owner().create_principal(new_agent(name)).await.assert_status(201);
}

async fn lend(app: &TestApp, parent: &str, from: &str, to: &str) -> String {
    let body = json!({"tenant_id": TENANT, "parent_id": parent, "delegator_id": from,
        "delegate_id": to, "actions": ["payment.*"], "purposes": ["invoice-settlement"],
        "jurisdictions": ["DE"], "max_amount": "100", "currency": "EUR", "can_delegate": true});
    let made = app.owner().create_delegation(body).await.assert_status(201);
    made["delegation"]["id"].as_str().unwrap().to_owned()
}

fn by(agent: &str, delegation: Option<&str>) -> Value {
    asking(10.0, "DE").with("subject", agent).with("delegation_id", delegation)
}

/// Returns the reason codes of an agent's small payment,
/// under its delegation and under any authority.
async fn asked(client: &Client, agent: &str, delegation: &str) -> [String; 2] {
    let ask = async |ask: Value| {
        let answer = client.evaluate(ask).await.assert_status(200);
        assert_eq!(answer["decision"] == "allow", answer["reason_code"] == "permission_granted");
        answer["reason_code"].as_str().unwrap().to_owned()
    };
    [ask(by(agent, Some(delegation))).await, ask(by(agent, None)).await]
}

/// Returns the delegations that would end with this one, as pairs of delegate and delegation.
async fn radius(app: &TestApp, delegation: &str) -> Vec<(String, String)> {
    let found = app.owner().get_blast_radius(delegation).await.assert_status(200);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let below = found["delegations"].as_array().unwrap();
    below.iter().map(|one| (text(&one["delegate_id"]), text(&one["id"]))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_below_a_revoked_delegation_is_permitted() {
    let (app, client, root) = demo().await;
    for name in ["second-bot", "third-bot"] {
        agent(&app, name).await;
    }
    let middle = lend(&app, &root, AGENT, SECOND).await;
    let leaf = lend(&app, &middle, SECOND, THIRD).await;
    let all = radius(&app, &root).await;
    let wanted = [(AGENT, &root), (SECOND, &middle), (THIRD, &leaf)];
    assert_eq!(all, wanted.map(|(agent, id)| (agent.to_owned(), id.clone())));
    let mut streams = Vec::new();
    for (agent, delegation) in &all {
        assert_eq!(asked(&client, agent, delegation).await, ["permission_granted"; 2], "{agent}");
        let ask = by(agent, Some(delegation));
        let (_, decided) = client.evaluate(ask).await;
        let (lines, _) = Lines::stops(&client, decided["decision_id"].as_str().unwrap()).await;
        streams.push(lines);
    }

    for (revoked, kept) in [(&middle, 1), (&root, 0)] {
        let falls = radius(&app, revoked).await;
        app.owner().revoke_delegation(revoked, Some("over")).await.assert_status(200);
        for (agent, delegation) in &falls {
            let reasons = asked(&client, agent, delegation).await;
            assert_eq!(reasons, ["delegation_revoked"; 2], "{agent}");
        }
        // Only the streams of delegations that ended get an event.
        for mut fallen in streams.split_off(kept) {
            let event = fallen.last().await;
            assert_eq!(event["stop_condition"], "delegation.revoked", "{event:#}");
            assert_eq!(event["reason_code"], "delegation_revoked");
        }
        for (agent, delegation) in &all[..kept] {
            let reasons = asked(&client, agent, delegation).await;
            assert_eq!(reasons, ["permission_granted"; 2], "{agent}");
        }
    }
    for (agent, delegation) in &all {
        assert_eq!(asked(&client, agent, delegation).await, ["delegation_revoked"; 2], "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_is_denied_it_cannot_let_others_do() {
    let (app, client, root) = demo().await;
    agent(&app, "second-bot").await;
    let lent = lend(&app, &root, AGENT, SECOND).await;
    assert_eq!(asked(&client, SECOND, &lent).await, ["permission_granted"; 2]);
    let ask = by(SECOND, Some(&lent));
    let (_, decided) = client.evaluate(ask).await;
    let (mut stream, _) = Lines::stops(&client, decided["decision_id"].as_str().unwrap()).await;

    app.owner()
        .create_uses(new_uses(AGENT, "payment.execute").with("allowed", 0))
        .await
        .assert_status(201);
    assert_eq!(asked(&client, SECOND, &lent).await, ["capability_denied"; 2]);
    let ended = stream.last().await;
    assert_eq!(ended["stop_condition"], "authority.revoked", "{ended:#}");
    let item = format!("uses/item?agent_id={AGENT}&used_id=payment.execute&used_kind=action");
    let path = format!("/api/v1/relationships/{item}");
    assert_eq!(app.owner().call("DELETE", &path, None, &[]).await.0, 200);
    assert_eq!(asked(&client, SECOND, &lent).await, ["permission_granted"; 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_of_an_agent_concerns_those_to_whom_it_lends() {
    let (app, client, root) = demo().await;
    agent(&app, "second-bot").await;
    let lent = lend(&app, &root, AGENT, SECOND).await;
    let check = json!({"tenant_id": TENANT, "action_id": "payment.execute", "actor_entity_id": AGENT,
                       "coupling_result": "deny_required", "runtime_effect": "deny"});
    let check = app.owner().create_coupling_check(check).await.assert_status(201);
    let drift = json!({"tenant_id": TENANT, "check_id": check["coupling_check"]["id"],
                       "action_id": "payment.execute", "actor_entity_id": AGENT,
                       "drift_type": "stable_drift", "severity": "critical"});
    assert_eq!(asked(&client, SECOND, &lent).await, ["permission_granted"; 2]);
    app.owner().create_drift_event(drift).await.assert_status(201);
    assert_eq!(asked(&client, SECOND, &lent).await, ["reality_decoupled"; 2]);
}
