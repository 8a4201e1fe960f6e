//! An erased person with a token that is still valid gains no right to approve.

use serde_json::json;

use super::{ANN, BOB, World};
use crate::support::{Answered, Plain, nothing, only};

/// Ann made the API key that makes the requests. She may not approve them, before or after her
/// erasure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_made_the_key_is_still_recognised() {
    let world = World::start().await;
    let ann = world.person("admin", ANN);
    let key = json!({"label": "hers", "scopes": ["runtime:read", "runtime:write"]});
    let made = ann.create_api_key(key).await.assert_status(201);
    let hers = world.app.client(made["secret"].as_str().unwrap());
    world.erase_ann().await;
    let (_, approval) = world.held(&hers, "Globex").await;
    let (status, refused) = world.act(&ann, &approval, "approve", nothing()).await;
    assert_eq!((status, refused["error"].text()), (409, "approver_not_eligible"), "{refused:#}");
    let bob = world.person("approver", BOB);
    assert_eq!(world.act(&bob, &approval, "approve", nothing()).await.0, 200);
}

/// Ann made a request as an owner, and it is pending. The request stays, and she still may not
/// approve it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asked_is_still_recognised() {
    let world = World::start().await;
    // A person makes requests as the installation's owner. Ann is also a user of the tenant.
    let asker = world.app.owner_named(ANN);
    let ann = world.person("admin", ANN);
    let (_, approval) = world.held(&asker, "Globex").await;
    world.erase_ann().await;
    let shown = world.owner.get_approval(&approval).await.assert_shown("approval");
    assert_eq!(shown["state"], "pending");
    assert!(shown["requested_by"][0]["id"].as_str().unwrap().starts_with("erased|"), "{shown:#}");
    let (status, refused) = world.act(&ann, &approval, "approve", nothing()).await;
    assert_eq!((status, refused["error"].text()), (409, "approver_not_eligible"), "{refused:#}");
}

/// A person who has a principal loses access with it, by subject and by address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_an_erased_principal_is_refused() {
    let world = World::start().await;
    let subject = format!("dev|{ANN}");
    world.human("ann.other@example.org", &subject).await;
    let ann = world.person("approver", ANN);
    let (_, approval) = world.held(&world.key, "Globex").await;
    assert_eq!(ann.list_approvals("").await.0, 200);
    world.erase(only("external_subject", &subject)).await.assert_status(200);
    let (status, refused) = world.act(&ann, &approval, "approve", nothing()).await;
    assert!(matches!(status, 401 | 403), "{status} {refused:#}");
    // A token with only the principal's address is refused as well.
    let other = world.person("approver", "ann.other@example.org");
    assert!(matches!(other.list_approvals("").await.0, 401 | 403));
}

/// The erased person's approvals that were not used yet are void.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_of_an_erased_person_is_void() {
    let world = World::start().await;
    let ann = world.person("approver", ANN);
    let (_, approval) = world.held(&world.key, "Globex").await;
    let (status, acted) = world.act(&ann, &approval, "approve", nothing()).await;
    assert_eq!((status, acted["approval"]["state"].text()), (200, "approved"), "{acted:#}");
    world.erase_ann().await;
    let mut ask = crate::support::asking(25_000.0, "DE");
    ask["context"]["payee"] = "Globex".into();
    ask["approval_id"] = json!(approval);
    let answer = world.key.evaluate(ask).await.assert_status(200);
    assert_ne!(answer["decision"], "allow", "{answer:#}");
    world.act(&ann, &approval, "approve", nothing()).await.assert_status(409);
}
