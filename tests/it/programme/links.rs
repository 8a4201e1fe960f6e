//! Links between consultants and tenants.

use serde_json::json;

use super::{World, id, is, is_about, record};
use crate::support::{Plain, nothing, only};

const PATH: &str = "/consultant-tenant-links";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_is_invited_accepted_and_revoked() {
    let world = World::start().await;
    let (tenant, ada) = (world.tenant("acme").await, world.consultant("ada").await);
    let pair = json!({"consultant_id": ada, "tenant_id": tenant});
    let made = world.make(PATH, pair.clone()).await;
    assert_eq!((made["status"].text(), made["scope"].text()), ("invited", "view_only"));
    assert!(made["accepted_at"].is_null());
    let twice = world.post(PATH, pair.clone()).await;
    is(&twice, 409, "already_exists");
    let named = |field: &str| json!({"field": field, "problem": "already has a link"});
    assert_eq!(twice.1["details"], json!([named("consultant_id"), named("tenant_id")]));
    let path = format!("{PATH}/{}", id(&made));
    is_about(&world.patch(&path, only("accept", false)).await, "accept");
    is_about(&world.patch(&path, only("scope", "everything")).await, "scope");
    is_about(&world.patch(&path, only("status", "active")).await, "status");
    let (_, scoped) = world.patch(&path, only("scope", "attest")).await;
    assert_eq!(
        (record(&scoped)["scope"].text(), record(&scoped)["status"].text()),
        ("attest", "invited")
    );
    let (_, accepted) = world.patch(&path, only("accept", true)).await;
    let accepted = record(&accepted);
    assert!(accepted["status"] == "active" && accepted["accepted_at"].is_string(), "{accepted:#}");
    let (status, again) = world.patch(&path, only("accept", true)).await;
    assert_eq!((status, record(&again)), (200, accepted), "unchanged");
    let revoke = format!("{path}/revoke");
    is_about(&world.post(&revoke, nothing()).await, "reason");
    let (_, revoked) = world.post(&revoke, only("reason", "the end")).await;
    let revoked = record(&revoked);
    assert!(revoked["status"] == "revoked" && revoked["revoke_reason"] == "the end");
    is(&world.post(&revoke, only("reason", "again")).await, 409, "record_is_final");
    is(&world.patch(&path, only("accept", true)).await, 409, "record_is_final");
    is(&world.patch(&path, only("scope", "operate")).await, 409, "record_is_final");
    let other = world.make(PATH, pair).await;
    assert_eq!(world.ids(&format!("{PATH}?status=revoked")).await, [id(&made)]);
    assert_eq!(world.ids(&format!("{PATH}?status=invited")).await, [id(&other)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_link_is_revoked() {
    let world = World::start().await;
    let (tenant, ada) = (world.tenant("acme").await, world.consultant("ada").await);
    let path = format!("{PATH}/{}", world.link(&ada, &tenant, "active").await);
    let (status, gone) = world.delete(&path).await;
    let gone = record(&gone);
    assert_eq!((status, gone["status"].text()), (200, "revoked"));
    assert!(gone["deleted_at"].is_string() && gone["revoked_at"].is_string(), "{gone:#}");
    assert_eq!(world.get(&path).await.0, 404);
    world.link(&ada, &tenant, "invited").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_or_retired_consultant_gets_no_link() {
    let world = World::start().await;
    let (tenant, other) = (world.tenant("acme").await, world.tenant("other").await);
    let ada = world.consultant("ada").await;
    let invited = format!("{PATH}/{}", world.link(&ada, &tenant, "invited").await);
    for status in ["suspended", "retired"] {
        assert_eq!(
            world.patch(&format!("/consultants/{ada}"), only("status", status)).await.0,
            200
        );
        let pair = json!({"consultant_id": ada, "tenant_id": other});
        is(&world.post(PATH, pair).await, 409, "transition_not_allowed");
        is(&world.patch(&invited, only("accept", true)).await, 409, "transition_not_allowed");
    }
    let unknown = json!({"consultant_id": "svc:consultant:none", "tenant_id": tenant});
    is_about(&world.post(PATH, unknown).await, "consultant_id");
    let unknown = json!({"consultant_id": ada, "tenant_id": "svc:tenant:none"});
    is_about(&world.post(PATH, unknown).await, "tenant_id");
    let revoked = json!({"consultant_id": ada, "tenant_id": tenant, "status": "revoked"});
    assert_eq!(world.post(PATH, revoked).await.0, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_is_made_once_under_an_idempotency_key() {
    let world = World::start().await;
    let (tenant, ada) = (world.tenant("acme").await, world.consultant("ada").await);
    let pair = json!({"consultant_id": ada, "tenant_id": tenant});
    let key = [("idempotency-key", "one")];
    let path = format!("/api/v1{PATH}");
    let (first, one) = world.owner.call("POST", &path, Some(pair.clone()), &key).await;
    let (second, two) = world.owner.call("POST", &path, Some(pair), &key).await;
    assert_eq!((first, second, &one), (201, 201, &two));
    let path = format!("{path}/{}/revoke", id(&record(&one)));
    let reason = only("reason", "r");
    let key = [("idempotency-key", "two")];
    let (first, one) = world.owner.call("POST", &path, Some(reason.clone()), &key).await;
    let (second, two) = world.owner.call("POST", &path, Some(reason), &key).await;
    assert_eq!((first, second, one), (200, 200, two));
    let stale = [("if-match", "\"0\"")];
    let path = format!("/api/v1/consultants/{ada}");
    let (status, _) = world.owner.call("PATCH", &path, Some(only("bio", "x")), &stale).await;
    assert_eq!(status, 412);
}
