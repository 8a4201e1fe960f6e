//! A person who was erased and still has a token approves nothing that they could not approve before.

use serde_json::json;

use super::{ANN, BOB, World};

/// Ann made the key that asks: she may not approve what it asks, erased or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_made_the_key_is_still_recognised() {
    let world = World::start().await;
    let ann = world.person("admin", ANN);
    let key = json!({"label": "hers", "scopes": ["runtime:read", "runtime:write"]});
    let (status, made) = ann.post("/api/v1/app/api-keys", key).await;
    assert_eq!(status, 201, "{made:#}");
    let hers = world.app.client(made["secret"].as_str().unwrap());
    world.erase_ann().await;
    let (_, approval) = world.held(&hers, "Globex").await;
    let (status, refused) = world.act(&ann, &approval, "approve", json!({})).await;
    assert_eq!((status, &refused["error"]), (409, &json!("approver_not_eligible")), "{refused:#}");
    let bob = world.person("approver", BOB);
    assert_eq!(world.act(&bob, &approval, "approve", json!({})).await.0, 200);
}

/// Another owner asked, and the request waits: it stays, and they may still not approve it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asked_is_still_recognised() {
    let world = World::start().await;
    // People ask with the owner's token alone; the same person is also one of the tenant's.
    let asker = world.app.owner_named(ANN);
    let ann = world.person("admin", ANN);
    let (_, approval) = world.held(&asker, "Globex").await;
    world.erase_ann().await;
    let shown = world.shown(&format!("/api/v1/approvals/{approval}"), "approval").await;
    assert_eq!(shown["state"], "pending");
    assert!(shown["requested_by"][0]["id"].as_str().unwrap().starts_with("erased|"), "{shown:#}");
    let (status, refused) = world.act(&ann, &approval, "approve", json!({})).await;
    assert_eq!((status, &refused["error"]), (409, &json!("approver_not_eligible")), "{refused:#}");
}

/// A person with a principal loses their access with it, under each of their names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_an_erased_principal_is_refused() {
    let world = World::start().await;
    let subject = format!("dev|{ANN}");
    world.human("ann.other@example.org", &subject).await;
    let ann = world.person("approver", ANN);
    let (_, approval) = world.held(&world.key, "Globex").await;
    assert_eq!(ann.get("/api/v1/app/approvals").await.0, 200);
    let (status, erased) = world.erase(json!({"external_subject": subject})).await;
    assert_eq!(status, 200, "{erased:#}");
    let (status, refused) = world.act(&ann, &approval, "approve", json!({})).await;
    assert!(matches!(status, 401 | 403), "{status} {refused:#}");
    // Also by the address alone.
    let other = world.person("approver", "ann.other@example.org");
    assert!(matches!(other.get("/api/v1/app/approvals").await.0, 401 | 403));
}

/// What she approved and nobody used is void, and cannot be used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_of_an_erased_person_is_void() {
    let world = World::start().await;
    let ann = world.person("approver", ANN);
    let (_, approval) = world.held(&world.key, "Globex").await;
    let (status, acted) = world.act(&ann, &approval, "approve", json!({})).await;
    assert_eq!((status, &acted["approval"]["state"]), (200, &json!("approved")), "{acted:#}");
    world.erase_ann().await;
    let mut ask = crate::support::asking(25_000.0, "DE");
    ask["context"]["payee"] = json!("Globex");
    ask["approval_id"] = json!(approval);
    let (status, answer) = world.key.post("/api/v1/runtime/evaluate", ask).await;
    assert_eq!(status, 200, "{answer:#}");
    assert_ne!(answer["decision"], "allow", "{answer:#}");
    let (status, again) = world.act(&ann, &approval, "approve", json!({})).await;
    assert_eq!(status, 409, "{again:#}");
}
