//! An override by an author who is erased.

use serde_json::json;

use super::{ANN, BOB, TENANT, World, dump::columns_with};
use crate::support::{Answered, asking};

/// The override no longer names the person, and it ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_override_ends_with_the_person_who_gave_it() {
    let world = World::start().await;
    let boss = world.human(BOB, "dev|bob").await;
    let anchor = json!({"tenant_id": TENANT, "anchor_type": "system_of_record", "display_name": "ERP",
                        "status": "active", "authority": {"owner_entity_id": boss},
                        "freshness_contract": {"max_staleness_seconds": 60},
                        "grounds_actions": ["payment.*"]});
    world.owner.create_reality_anchor(anchor).await.assert_made("reality_anchor");
    let check = json!({"tenant_id": TENANT, "action_id": "payment.execute",
                       "actor_entity_id": "svc:agent:acme:invoice-bot",
                       "coupling_result": "coupled", "runtime_effect": "continue"});
    let check = world.owner.create_coupling_check(check).await.assert_made("coupling_check");
    assert_eq!(world.owner.run_coupling_check(&check).await.0, 202);
    let decided = async || {
        let (_, answer) = world.key.evaluate(asking(10.0, "DE")).await;
        answer["reason_code"].as_str().unwrap().to_owned()
    };
    assert_eq!(decided().await, "reality_revalidation_required");
    let said = json!({"decision": "override", "rationale": "seen by ann@example.org"});
    let ann = world.app.owner_named(ANN);
    let given = ann.decide_coupling_check(&check, said).await.assert_status(200);
    assert_eq!(given["coupling_check"]["override"]["state"], "in_force");
    assert_eq!(decided().await, "permission_granted");

    let erasure = world.erase_ann().await;
    assert_eq!(erasure["erased"]["ended_overrides"], 1, "{erasure:#}");
    assert_eq!(columns_with(&world.app, ANN).await, Vec::<String>::new());
    let shown = world.owner.get_coupling_check(&check).await.assert_shown("coupling_check");
    assert_eq!(shown["override"]["state"], "ended", "{shown:#}");
    assert!(!shown.to_string().to_lowercase().contains(ANN), "{shown:#}");
    // The signature remains.
    assert!(shown["override"]["by"][0]["signature"].is_string(), "{shown:#}");
    assert_eq!(decided().await, "reality_revalidation_required");
}
