//! Stopping: signals and quarantines apply to the next decision, and only people lift them.

use serde_json::{Value, json};

use super::{asking, demo};
use crate::support::Client;

pub(super) const AGENT: &str = "svc:agent:acme:invoice-bot";
pub(super) const TENANT: &str = "svc:tenant:acme";

/// Returns the reason code for a small payment.
pub(super) async fn outcome(client: &Client) -> String {
    let (status, answer) = client.post("/api/v1/runtime/evaluate", asking(10.0, "DE")).await;
    assert_eq!(status, 200, "{answer:#}");
    let allowed = answer["decision"] == "allow";
    assert_eq!(allowed, answer["reason_code"] == "permission_granted", "{answer:#}");
    answer["reason_code"].as_str().unwrap().to_owned()
}

async fn made(client: &Client, path: &str, kind: &str, body: Value) -> String {
    let (status, answer) = client.post(path, body).await;
    assert_eq!(status, 201, "{answer:#}");
    answer[kind]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_stopped_is_denied_until_a_person_lifts_it() {
    let (app, client, _) = demo().await;
    assert_eq!(outcome(&client).await, "permission_granted");
    let key = app.client(&app.api_key(TENANT, &["runtime:stop"]).await);
    let body = json!({"actor_id": AGENT, "reason": "it pays twice"});
    let id = made(&key, "/v1/stop-signals", "stop_signal", body).await;
    assert_eq!(outcome(&client).await, "actor_stopped");
    let lift = format!("/api/v1/stop-signals/{id}/lift");
    assert_eq!(key.post(&lift, json!({})).await.0, 403);
    let stranger = app.client(&app.member_token("svc:tenant:other", "admin"));
    assert_eq!(stranger.post(&lift, json!({})).await.0, 403);
    let admin = app.client(&app.member_token(TENANT, "admin"));
    let twin = lift.replace("/api/v1/", "/api/v1/app/");
    let (status, lifted) = admin.post(&twin, json!({})).await;
    assert_eq!((status, &lifted["stop_signal"]["lifted_by"]), (200, &json!("admin@example.org")));
    assert_eq!(outcome(&client).await, "permission_granted");
    let (status, again) = app.owner().post(&lift, json!({})).await;
    assert_eq!((status, &again["error"]), (409, &json!("record_is_final")));
    let nobody = json!({"tenant_id": TENANT, "actor_id": "svc:agent:acme:none", "reason": "x"});
    let (status, refused) = app.owner().post("/api/v1/stop-signals", nobody).await;
    assert_eq!((status, &refused["details"][0]["field"]), (400, &json!("actor_id")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quarantine_applies_to_what_matches_all_its_members() {
    let (app, client, delegation) = demo().await;
    let owner = app.owner();
    for (members, concerns) in [
        (json!({"delegation_id": delegation}), true),
        (json!({"action": "payment.*", "subject_id": AGENT}), true),
        (json!({"action": "report.*", "subject_id": AGENT}), false),
        (json!({}), true),
    ] {
        let mut body = members.clone();
        body["tenant_id"] = json!(TENANT);
        body["reason"] = json!("looks wrong");
        let id = made(&owner, "/api/v1/quarantines", "quarantine", body).await;
        let reason = if concerns { "capability_quarantined" } else { "permission_granted" };
        assert_eq!(outcome(&client).await, reason, "{members}");
        let (status, _) = owner.post(&format!("/api/v1/quarantines/{id}/release"), json!({})).await;
        assert_eq!(status, 200);
        assert_eq!(outcome(&client).await, "permission_granted", "{members}");
    }
    let (_, active) = owner.get("/api/v1/quarantines?state=active&count=true").await;
    assert_eq!(active["total"], 0);
    let body = json!({"tenant_id": TENANT, "delegation_id": "svc:del:acme:0", "reason": "x"});
    let (status, refused) = owner.post("/api/v1/quarantines", body).await;
    assert_eq!((status, &refused["details"][0]["field"]), (400, &json!("delegation_id")));
    // A key bound to some agents can quarantine only these agents.
    let bound = json!({"tenant_id": TENANT, "label": "bound", "scopes": ["runtime:stop"],
                       "principal_ids": [AGENT]});
    let (_, key) = owner.post("/api/v1/api-keys", bound).await;
    let bound = app.client(key["secret"].as_str().unwrap());
    let (status, _) = bound.post("/v1/quarantines", json!({"reason": "all of it"})).await;
    assert_eq!(status, 403);
    let own = json!({"reason": "mine", "subject_id": AGENT});
    made(&bound, "/v1/quarantines", "quarantine", own).await;
    assert_eq!(outcome(&client).await, "capability_quarantined");
}
