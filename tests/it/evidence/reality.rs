//! The reality facts of a decision are sealed with it. Replays and offline verifiers use them.

use chrono::SecondsFormat;
use serde_json::{Value, json};

use super::{TENANT, asking, bundle, check, decided, published, sealed, sealing};
use crate::support::Answered;
use authority_evidence::verify::Valid;
use authority_process::clock::Clock;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_on_anchors_replays_after_the_world_has_moved() {
    let (app, client) = sealing().await;
    let owner = app.owner();
    let (_, people) = owner.list_principals("principal_class=human").await;
    let anchor = json!({
        "tenant_id": TENANT, "anchor_type": "financial_context", "display_name": "Reference rates",
        "authority": {"owner_entity_id": people["principals"][0]["id"]}, "status": "active",
        "grounds_actions": ["payment.*"], "freshness_contract": {"max_staleness_seconds": 3600},
    });
    let (_, made) = owner.create_reality_anchor(anchor).await;
    let anchor = made["reality_anchor"]["id"].as_str().unwrap().to_owned();
    let sampled_at = Clock::default().now().to_rfc3339_opts(SecondsFormat::Micros, true);
    let observe = async |hash: &str| {
        let body = json!({"tenant_id": TENANT, "anchor_id": anchor, "sampled_at": sampled_at,
                          "content_hash": hash,
                          "observations": [{"path": "/rates/USD", "value": 1.0842}]});
        owner.create_reality_snapshot(body).await.assert_status(201);
    };
    observe("sha256:1").await;
    let id = decided(&client, asking(1200.0, "DE")).await;
    sealed(&client, &id).await;
    let keys = published(&client).await;
    let text = bundle(&client, &id).await;
    assert_eq!(check(&text, Some(&keys)), Ok(Valid::Trusted));
    let whole: Value = serde_json::from_str(&text).unwrap();
    let name = &whole["facts"]["value"]["reality"];
    let blob = whole["blobs"].as_array().unwrap().iter().find(|blob| blob["sha256"] == *name);
    let reality = &blob.unwrap()["json"];
    assert_eq!(reality["anchors"][0]["id"], anchor, "{reality:#}");
    assert_eq!(reality["anchors"][0]["newest"]["content_hash"], "sha256:1");
    assert!(!text.contains("/rates/USD"), "observations are not sealed: they can be erased");
    // An altered bundle no longer gives the same decision.
    let altered = text.replace("sha256:1\"", "sha256:2\"");
    assert!(check(&altered, Some(&keys)).is_err());
    // Another observation contradicts the first one.
    observe("sha256:9").await;
    let replay = async |mode: &str| {
        let body = json!({"decision_id": id, "mode": mode});
        client.mint_replay_proof(body).await.1
    };
    assert_eq!(replay("historical_state_snapshot").await["result"], "match");
    let now = replay("current_state").await;
    assert_eq!(now["result"], "mismatch", "{now:#}");
    assert!(now["diff"].to_string().contains("reality_decoupled"), "{now:#}");
    assert_eq!(check(&bundle(&client, &id).await, Some(&keys)), Ok(Valid::Trusted));
}
