//! Stopping: signals and quarantines apply to the next decision, and only people lift them.

use serde_json::json;

use super::{asking, demo};
use crate::support::{Answered, Client, Members, Plain, new_api_key, new_stop, nothing, only};

pub(super) const AGENT: &str = "svc:agent:acme:invoice-bot";
pub(super) const TENANT: &str = "svc:tenant:acme";

/// Returns the reason code for a small payment.
pub(super) async fn outcome(client: &Client) -> String {
    let answer = client.evaluate(asking(10.0, "DE")).await.assert_status(200);
    let allowed = answer["decision"] == "allow";
    assert_eq!(allowed, answer["reason_code"] == "permission_granted", "{answer:#}");
    answer["reason_code"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_stopped_is_denied_until_a_person_lifts_it() {
    let (app, client, _) = demo().await;
    assert_eq!(outcome(&client).await, "permission_granted");
    let key = app.client(&app.api_key(TENANT, &["runtime:stop"]).await);
    let body = json!({"actor_id": AGENT, "reason": "it pays twice"});
    let id = key.create_stop_signal(body).await.assert_made("stop_signal");
    assert_eq!(outcome(&client).await, "actor_stopped");
    let lift = format!("/api/v1/stop-signals/{id}/lift");
    assert_eq!(key.post(&lift, nothing()).await.0, 403);
    let stranger = app.client(&app.member_token("svc:tenant:other", "admin"));
    assert_eq!(stranger.post(&lift, nothing()).await.0, 403);
    let admin = app.client(&app.member_token(TENANT, "admin"));
    let twin = lift.replace("/api/v1/", "/api/v1/app/");
    let (status, lifted) = admin.post(&twin, nothing()).await;
    assert_eq!((status, lifted["stop_signal"]["lifted_by"].text()), (200, "admin@example.org"));
    assert_eq!(outcome(&client).await, "permission_granted");
    let (status, again) = app.owner().post(&lift, nothing()).await;
    assert_eq!((status, again["error"].text()), (409, "record_is_final"));
    let nobody = new_stop("svc:agent:acme:none", "x");
    let (status, refused) = app.owner().create_stop_signal(nobody).await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "actor_id"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quarantine_applies_to_what_matches_all_its_members() {
    let (app, client, delegation) = demo().await;
    let owner = app.owner();
    for (members, concerns) in [
        (only("delegation_id", &delegation), true),
        (json!({"action": "payment.*", "subject_id": AGENT}), true),
        (json!({"action": "report.*", "subject_id": AGENT}), false),
        (nothing(), true),
    ] {
        let body = members.clone().with("tenant_id", TENANT).with("reason", "looks wrong");
        let id = owner.create_quarantine(body).await.assert_made("quarantine");
        let reason = if concerns { "capability_quarantined" } else { "permission_granted" };
        assert_eq!(outcome(&client).await, reason, "{members}");
        let (status, _) = owner.release_quarantine(&id).await;
        assert_eq!(status, 200);
        assert_eq!(outcome(&client).await, "permission_granted", "{members}");
    }
    let (_, active) = owner.list_quarantines("state=active&count=true").await;
    assert_eq!(active["total"], 0);
    let body = json!({"tenant_id": TENANT, "delegation_id": "svc:del:acme:0", "reason": "x"});
    let (status, refused) = owner.create_quarantine(body).await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "delegation_id"));
    // A key bound to some agents can quarantine only these agents.
    let bound = new_api_key("bound", &["runtime:stop"]).with("principal_ids", [AGENT]);
    let (_, key) = owner.create_api_key(bound).await;
    let bound = app.client(key["secret"].as_str().unwrap());
    let (status, _) = bound.create_quarantine(only("reason", "all of it")).await;
    assert_eq!(status, 403);
    let own = json!({"reason": "mine", "subject_id": AGENT});
    bound.create_quarantine(own).await.assert_made("quarantine");
    assert_eq!(outcome(&client).await, "capability_quarantined");
}
