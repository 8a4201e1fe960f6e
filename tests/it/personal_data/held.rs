//! A legal hold, of a tenant or of the installation, keeps a person's data from erasure.

use serde_json::json;

use super::{ANN, TENANT, World};
use crate::support::Wishes;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_hold_keeps_what_it_has() {
    let world = World::start().await;
    let principal = world.human(ANN, "user_1234").await;
    world.lead(ANN).await;
    let tenant = format!("/api/v1/tenants/{TENANT}");
    let hold = json!({"legal_hold": {"reason": "case 7"}});
    assert_eq!(world.owner.patch(&tenant, hold).await.0, 200);
    for named in [json!({"email": ANN}), json!({"principal_id": principal})] {
        let (status, refused) = world.erase(named).await;
        assert_eq!((status, &refused["error"]), (409, &json!("legal_hold")), "{refused:#}");
    }
    let kept = world.shown(&format!("/api/v1/principals/{principal}"), "principal").await;
    assert_eq!(kept["email"], ANN);
    assert_eq!(world.export(json!({"email": ANN})).await.0.len(), 2);
    // A person who has no data in the held tenant can be erased.
    world.lead("lee@globex.example").await;
    let (status, erased) = world.erase(json!({"email": "lee@globex.example"})).await;
    assert_eq!((status, &erased["erasure"]["erased"]["leads"]), (200, &json!(1)), "{erased:#}");
    assert_eq!(world.owner.patch(&tenant, json!({"legal_hold": null})).await.0, 200);
    assert_eq!(world.erase_ann().await["erased"]["principals"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_installations_hold_keeps_everything() {
    let wishes = Wishes { legal_hold: Some("case 8".to_owned()), ..Wishes::default() };
    let world = World::wished(wishes).await;
    world.lead(ANN).await;
    let (status, refused) = world.erase(json!({"email": ANN})).await;
    assert_eq!((status, &refused["error"]), (409, &json!("legal_hold")), "{refused:#}");
    assert_eq!(world.export(json!({"email": ANN})).await.0.len(), 1);
}
