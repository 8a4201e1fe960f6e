//! Snapshots: refusals, the newest snapshot, freshness and verification.

use authority_crypto::sha256;
use serde_json::{Value, json};

use super::{TENANT, World, ago, fault, refusal, with};
use crate::support::{Answered, Plain, nothing, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_contradicts_the_clock_the_anchor_or_itself_is_refused() {
    let world = World::start().await;
    let anchor = world.new_anchor(nothing()).await;
    let body = |more: Value| {
        let body = json!({"tenant_id": TENANT, "anchor_id": anchor, "sampled_at": ago(5),
                          "content_hash": "sha256:00"});
        with(body, more)
    };
    let post = async |more| world.owner.create_reality_snapshot(body(more)).await;
    for (more, field) in [
        (only("sampled_at", ago(-65)), "sampled_at"),
        (only("valid_until", ago(5 + 1)), "valid_until"),
        (json!({"content_summary": {"n": 1}}), "content_hash"),
        (only("anchor_type", "risk_context"), "anchor_type"),
        (only("anchor_id", "svc:ent:acme:reality_anchor:none"), "anchor_id"),
        (json!({"observations": [{"path": "a", "value": 1}]}), "observations[0].path"),
        (json!({"observations": [{"path": "/a"}]}), "observations[0].value"),
        (json!({"observations": vec![json!({"path": "/a", "value": 1}); 257]}), "observations"),
        (json!({"signature": {"alg": "none", "kid": "k", "value_b64": "AA"}}), "signature.alg"),
        (only("observations_hash", "sha256:00"), "observations_hash"),
    ] {
        assert_eq!(fault(&post(more).await), field);
    }
    // A source's clock may be up to a minute ahead.
    assert_eq!(post(only("sampled_at", ago(-50))).await.0, 201);
    let hash = format!("sha256:{}", hex::encode(sha256(br#"{"a":"x","n":1}"#)));
    let made = post(json!({
        "content_summary": {"n": 1, "a": "x"}, "content_hash": hash,
        "observations": [{"path": "/n", "value": 1, "unit": "EUR"}],
    }))
    .await
    .assert_status(201);
    let made = &made["reality_snapshot"];
    let observed = sha256(br#"[{"path":"/n","unit":"EUR","value":1}]"#);
    assert_eq!(made["observations_hash"], format!("sha256:{}", hex::encode(observed)));
    assert_eq!(made["anchor_type"], "system_of_record");
    let (_, verified) = world.owner.verify_reality_snapshot(made["id"].as_str().unwrap()).await;
    let found = &verified["reality_snapshot"]["verification"];
    assert_eq!(
        (found["content"].text(), found["signature"].text(), found["is_stale"].as_bool()),
        ("match", "none", Some(false))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_time_and_content_is_there_once() {
    let world = World::start().await;
    let anchor = world.new_anchor(nothing()).await;
    let body = json!({"tenant_id": TENANT, "anchor_id": anchor, "sampled_at": ago(5),
                      "content_hash": "sha256:00"});
    let path = "/api/v1/reality-snapshots";
    let (_, first) = world.owner.post(path, body.clone()).await;
    let again = world.owner.post(path, body.clone()).await;
    assert_eq!(refusal(&again), (409, "snapshot_exists".to_owned()));
    let first = format!("{path}/{}", first["reality_snapshot"]["id"].as_str().unwrap());
    assert_eq!(world.owner.call("DELETE", &first, None, &[]).await.0, 200);
    assert_eq!(world.owner.get(&first).await.0, 404);
    assert_eq!(world.owner.post(path, body).await.0, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn freshness_is_computed_on_each_read() {
    let world = World::start().await;
    let anchor = world.new_anchor(nothing()).await;
    let old = world.new_snapshot(&anchor, 61, "sha256:old").await;
    let new = world.new_snapshot(&anchor, 5, "sha256:new").await;
    let ended = json!({"tenant_id": TENANT, "anchor_id": anchor, "sampled_at": ago(30),
                       "valid_until": ago(10), "content_hash": "sha256:ended",
                       "freshness": {"source": "cdc", "is_stale": false}});
    let ended = world.owner.create_reality_snapshot(ended).await.assert_made("reality_snapshot");
    let mut stale = [vec![], vec![]];
    for (place, is_stale) in ["false", "true"].iter().enumerate() {
        let (_, listed) = world
            .owner
            .list_reality_snapshots(&format!("anchor_id={anchor}&is_stale={is_stale}"))
            .await;
        for row in listed["reality_snapshots"].as_array().unwrap() {
            assert_eq!(row["freshness"]["is_stale"].to_string(), *is_stale, "{row:#}");
            assert_eq!(row["freshness"]["max_staleness_seconds"], 60);
            stale[place].push(row["id"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(stale, [vec![new], vec![ended.clone(), old]]);
    let (_, one) = world.owner.get_reality_snapshot(&ended).await;
    let freshness = &one["reality_snapshot"]["freshness"];
    assert_eq!(freshness["source"], "cdc");
    assert!((30..60).contains(&freshness["age_seconds"].as_i64().unwrap()), "{freshness}");
    let since =
        format!("/api/v1/reality-snapshots?anchor_id={anchor}&count=true&since={}", ago(20));
    assert_eq!(world.owner.get(&since).await.1["total"], 1);
}

/// The newest snapshot is the one with the greatest `sampled_at`. After its deletion, the previous
/// one is the newest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_is_by_the_time_of_the_sample() {
    let world = World::start().await;
    let anchor = world.new_anchor(nothing()).await;
    let newest = async || {
        let (_, verified) = world.owner.verify_reality_anchor(&anchor).await;
        verified["reality_anchor"]["verification"]["snapshot_id"].as_str().map(str::to_owned)
    };
    let late = world.new_snapshot(&anchor, 20, "sha256:a").await;
    let new = world.new_snapshot(&anchor, 10, "sha256:b").await;
    assert_eq!(newest().await, Some(new.clone()));
    world.new_snapshot(&anchor, 30, "sha256:c").await;
    assert_eq!(newest().await, Some(new.clone()));
    world.owner.delete_reality_snapshot(&new).await;
    assert_eq!(newest().await, Some(late));
}
