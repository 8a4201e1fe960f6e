//! A legal hold, of a tenant or of the installation, keeps a person's data from erasure.

use serde_json::json;

use super::{ANN, TENANT, World};
use crate::support::{Answered, Plain, Wishes, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_hold_keeps_what_it_has() {
    let world = World::start().await;
    let principal = world.human(ANN, "user_1234").await;
    world.lead(ANN).await;
    let hold = json!({"legal_hold": {"reason": "case 7"}});
    assert_eq!(world.owner.update_tenant(TENANT, hold).await.0, 200);
    for named in [only("email", ANN), only("principal_id", &principal)] {
        let (status, refused) = world.erase(named).await;
        assert_eq!((status, refused["error"].text()), (409, "legal_hold"), "{refused:#}");
    }
    let kept = world.owner.get_principal(&principal).await.assert_shown("principal");
    assert_eq!(kept["email"], ANN);
    assert_eq!(world.export(only("email", ANN)).await.0.len(), 2);
    // A person who has no data in the held tenant can be erased.
    world.lead("lee@globex.example").await;
    let (status, erased) = world.erase(only("email", "lee@globex.example")).await;
    assert_eq!((status, erased["erasure"]["erased"]["leads"].number()), (200, 1), "{erased:#}");
    assert_eq!(world.owner.update_tenant(TENANT, json!({"legal_hold": null})).await.0, 200);
    assert_eq!(world.erase_ann().await["erased"]["principals"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_installations_hold_keeps_everything() {
    let wishes = Wishes { legal_hold: Some("case 8".to_owned()), ..Wishes::default() };
    let world = World::wished(wishes).await;
    world.lead(ANN).await;
    let (status, refused) = world.erase(only("email", ANN)).await;
    assert_eq!((status, refused["error"].text()), (409, "legal_hold"), "{refused:#}");
    assert_eq!(world.export(only("email", ANN)).await.0.len(), 1);
}
