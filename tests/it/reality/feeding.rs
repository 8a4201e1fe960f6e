//! Snapshots sent with API keys: permissions, rate limits, batches.

use serde_json::{Value, json};

use super::{AGENT, TENANT, World, ago, refusal};
use crate::support::Client;

const PATH: &str = "/v1/reality-snapshots";

async fn feeder(world: &World) -> (String, Client) {
    let body = json!({"tenant_id": TENANT, "label": "erp", "scopes": ["reality:write"]});
    let (_, made) = world.owner.post("/api/v1/api-keys", body).await;
    let id = made["api_key"]["id"].as_str().unwrap().to_owned();
    (id, world.app.client(made["secret"].as_str().unwrap()))
}

fn body(anchor: &str, seconds: i64) -> Value {
    json!({"anchor_id": anchor, "sampled_at": ago(seconds), "content_hash": format!("sha256:{seconds}")})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_key_that_the_anchor_names_brings_snapshots() {
    let world = World::start().await;
    let (id, key) = feeder(&world).await;
    let (_, stranger) = feeder(&world).await;
    let anchor = world.new_anchor(json!({"source": {"feeder_key_ids": [id]}})).await;
    let refused = stranger.post(PATH, body(&anchor, 9)).await;
    assert_eq!(refusal(&refused), (403, "feeder_not_permitted".to_owned()));
    let (status, fed) = key.post(PATH, body(&anchor, 9)).await;
    assert_eq!(status, 201, "{fed:#}");
    assert_eq!(fed["reality_snapshot"]["feeder_key_id"], id.as_str());
    assert_eq!(fed["reality_snapshot"]["freshness"]["is_stale"], false);
    let again = key
        .post(
            PATH,
            json!({"anchor_id": anchor, "content_hash": "sha256:9",
                                      "sampled_at": fed["reality_snapshot"]["sampled_at"]}),
        )
        .await;
    assert_eq!(refusal(&again), (409, "snapshot_exists".to_owned()));
    // The second call has an idempotency key and gets the same response again.
    let headers = [("idempotency-key", "one")];
    let same = body(&anchor, 8);
    let (first, second) = (
        key.call("POST", PATH, Some(same.clone()), &headers).await,
        key.call("POST", PATH, Some(same), &headers).await,
    );
    assert_eq!(first.0, 201, "{:#}", first.1);
    assert_eq!(first, second);
    // Once a feeder is revoked, its snapshots are ignored.
    let verify = format!("/api/v1/reality-anchors/{anchor}/verify");
    let newest = async || {
        let (_, verified) = world.owner.post(&verify, json!({})).await;
        verified["reality_anchor"]["verification"]["snapshot_id"].clone()
    };
    assert_eq!(newest().await, first.1["reality_snapshot"]["id"]);
    assert_eq!(
        world.owner.call("DELETE", &format!("/api/v1/api-keys/{id}"), None, &[]).await.0,
        200
    );
    assert_eq!(newest().await, Value::Null);
    let bound = json!({"tenant_id": TENANT, "label": "b", "scopes": ["reality:write"],
                       "principal_ids": [AGENT]});
    let refused = world.owner.post("/api/v1/api-keys", bound).await;
    assert_eq!(super::fault(&refused), "principal_ids");
    let reader = world.app.client(&world.app.api_key(TENANT, &["runtime:write"]).await);
    assert_eq!(reader.post(PATH, body(&anchor, 1)).await.0, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tenants_anchor_is_unknown() {
    let world = World::start().await;
    let (id, _) = feeder(&world).await;
    let anchor = world.new_anchor(json!({"source": {"feeder_key_ids": [id]}})).await;
    let other = json!({"name": "Other", "slug": "other"});
    assert_eq!(world.owner.post("/api/v1/tenants", other).await.0, 201);
    let key = world.app.client(&world.app.api_key("svc:tenant:other", &["reality:write"]).await);
    assert_eq!(super::fault(&key.post(PATH, body(&anchor, 1)).await), "anchor_id");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_a_batch_is_refused_alone_and_the_rate_is_for_an_anchor_and_key() {
    let world = World::start().await;
    let (id, key) = feeder(&world).await;
    let named = json!({"source": {"feeder_key_ids": [id]}});
    let (one, two) = (world.new_anchor(named.clone()).await, world.new_anchor(named).await);
    let closed = world.new_anchor(json!({})).await;
    let mut rows = vec![body(&closed, 1), json!({"anchor_id": one}), body(&one, -90)];
    rows.extend((1..=12).map(|seconds| body(&one, seconds)));
    rows.extend((1..=3).map(|seconds| body(&two, seconds)));
    let (status, answer) =
        key.post(&format!("{PATH}:batch"), json!({"reality_snapshots": rows})).await;
    assert_eq!(status, 200, "{answer:#}");
    let results = answer["results"].as_array().unwrap();
    let codes: Vec<_> = results.iter().map(|one| one["error"].as_str().unwrap_or("")).collect();
    assert_eq!(codes[..3], ["feeder_not_permitted", "invalid_request", "invalid_request"]);
    for (index, member) in [(1, "sampled_at"), (2, "sampled_at")] {
        let message = results[index]["message"].as_str().unwrap();
        assert!(message.contains(&format!("reality_snapshots[{index}].{member}")), "{message}");
    }
    // The invalid snapshot with a future time also counted towards the limit.
    let mine = &codes[3..15];
    assert_eq!(mine.iter().filter(|code| code.is_empty()).count(), 9, "{mine:?}");
    assert_eq!(mine.iter().filter(|code| **code == "rate_limited").count(), 3, "{mine:?}");
    assert_eq!(codes[15..], ["", "", ""]);
    let request = key.http.post(format!("{}{PATH}", key.base)).bearer_auth(&key.token);
    let refused = request.json(&body(&one, 20)).send().await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    let none = json!({"reality_snapshots": []});
    let (status, refused) = key.post(&format!("{PATH}:batch"), none).await;
    let once = json!([{"field": "reality_snapshots", "problem": "is required"}]);
    assert_eq!((status, &refused["details"]), (400, &once));
    let many = json!({"reality_snapshots": vec![body(&one, 1); 101]});
    assert_eq!(key.post(&format!("{PATH}:batch"), many).await.0, 400);
}

/// Many callers push at once. Each gets its own response, but there are few transactions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_are_gathered() {
    let world = World::start().await;
    let (id, key) = feeder(&world).await;
    let named = json!({"source": {"feeder_key_ids": [id]}});
    let mut anchors = Vec::new();
    for _ in 0..8 {
        anchors.push(world.new_anchor(named.clone()).await);
    }
    let calls = anchors.iter().flat_map(|anchor| (1..=5).map(move |seconds| (anchor, seconds)));
    let calls = calls.map(|(anchor, seconds)| key.post(PATH, body(anchor, seconds)));
    for (status, fed) in futures_util::future::join_all(calls).await {
        assert_eq!(status, 201, "{fed:#}");
    }
}
