//! An override by an author who is erased.

use serde_json::json;

use super::{ANN, BOB, TENANT, World, dump::columns_with};
use crate::support::asking;

/// The override no longer names the person, and it ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_override_ends_with_the_person_who_gave_it() {
    let world = World::start().await;
    let boss = world.human(BOB, "dev|bob").await;
    let anchor = json!({"tenant_id": TENANT, "anchor_type": "system_of_record", "display_name": "ERP",
                        "status": "active", "authority": {"owner_entity_id": boss},
                        "freshness_contract": {"max_staleness_seconds": 60},
                        "grounds_actions": ["payment.*"]});
    world.make("/api/v1/reality-anchors", anchor, "reality_anchor").await;
    let check = json!({"tenant_id": TENANT, "action_id": "payment.execute",
                       "actor_entity_id": "svc:agent:acme:invoice-bot",
                       "coupling_result": "coupled", "runtime_effect": "continue"});
    let check = world.make("/api/v1/reality-coupling-checks", check, "coupling_check").await;
    let path = format!("/api/v1/reality-coupling-checks/{check}");
    assert_eq!(world.owner.post(&format!("{path}/check"), json!({})).await.0, 202);
    let decided = async || {
        let (_, answer) = world.key.post("/api/v1/runtime/evaluate", asking(10.0, "DE")).await;
        answer["reason_code"].as_str().unwrap().to_owned()
    };
    assert_eq!(decided().await, "reality_revalidation_required");
    let said = json!({"decision": "override", "rationale": "seen by ann@example.org"});
    let ann = world.app.owner_named(ANN);
    let (status, given) = ann.post(&format!("{path}/decide"), said).await;
    assert_eq!(status, 200, "{given:#}");
    assert_eq!(given["coupling_check"]["override"]["state"], "in_force");
    assert_eq!(decided().await, "permission_granted");

    let erasure = world.erase_ann().await;
    assert_eq!(erasure["erased"]["ended_overrides"], 1, "{erasure:#}");
    assert_eq!(columns_with(&world.app, ANN).await, Vec::<String>::new());
    let shown = world.shown(&path, "coupling_check").await;
    assert_eq!(shown["override"]["state"], "ended", "{shown:#}");
    assert!(!shown.to_string().to_lowercase().contains(ANN), "{shown:#}");
    // The signature remains.
    assert!(shown["override"]["by"][0]["signature"].is_string(), "{shown:#}");
    assert_eq!(decided().await, "reality_revalidation_required");
}
