//! Snapshots sent with API keys: permissions, rate limits, batches.

use authority_model::{
    proto::reality::{
        FeedRealitySnapshotRequest, RealitySnapshot,
        reality_snapshot_service_client::RealitySnapshotServiceClient,
    },
    wire::Time,
};
use authority_process::clock::Clock;
use serde_json::{Value, json};
use tonic::{Code, Request};

use super::{AGENT, TENANT, World, ago, refusal};
use crate::support::{Answered, Client, Limits, Members, new_api_key, new_tenant, nothing, only};

const PATH: &str = "/v1/reality-snapshots";

async fn feeder(world: &World) -> (String, Client) {
    let (_, made) = world.owner.create_api_key(new_api_key("erp", &["reality:write"])).await;
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
    let refused = stranger.feed_reality_snapshot(body(&anchor, 9)).await;
    assert_eq!(refusal(&refused), (403, "feeder_not_permitted".to_owned()));
    let fed = key.feed_reality_snapshot(body(&anchor, 9)).await.assert_status(201);
    assert_eq!(fed["reality_snapshot"]["feeder_key_id"], id.as_str());
    assert_eq!(fed["reality_snapshot"]["freshness"]["is_stale"], false);
    let again = key
        .feed_reality_snapshot(json!({"anchor_id": anchor, "content_hash": "sha256:9",
                                      "sampled_at": fed["reality_snapshot"]["sampled_at"]}))
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
    let newest = async || {
        let (_, verified) = world.owner.verify_reality_anchor(&anchor).await;
        verified["reality_anchor"]["verification"]["snapshot_id"].clone()
    };
    assert_eq!(newest().await, first.1["reality_snapshot"]["id"]);
    assert_eq!(world.owner.revoke_api_key(&id).await.0, 200);
    assert_eq!(newest().await, Value::Null);
    let bound = new_api_key("b", &["reality:write"]).with("principal_ids", [AGENT]);
    let refused = world.owner.create_api_key(bound).await;
    assert_eq!(super::fault(&refused), "principal_ids");
    let reader = world.app.client(&world.app.api_key(TENANT, &["runtime:write"]).await);
    assert_eq!(reader.feed_reality_snapshot(body(&anchor, 1)).await.0, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tenants_anchor_is_unknown() {
    let world = World::start().await;
    let (id, _) = feeder(&world).await;
    let anchor = world.new_anchor(json!({"source": {"feeder_key_ids": [id]}})).await;
    let other = new_tenant("Other", "other");
    assert_eq!(world.owner.create_tenant(other).await.0, 201);
    let key = world.app.client(&world.app.api_key("svc:tenant:other", &["reality:write"]).await);
    assert_eq!(super::fault(&key.feed_reality_snapshot(body(&anchor, 1)).await), "anchor_id");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_a_batch_is_refused_alone_and_the_rate_is_for_an_anchor_and_key() {
    let world = World::start().await;
    let (id, key) = feeder(&world).await;
    let named = json!({"source": {"feeder_key_ids": [id]}});
    let (one, two) = (world.new_anchor(named.clone()).await, world.new_anchor(named).await);
    let closed = world.new_anchor(nothing()).await;
    let mut rows = vec![body(&closed, 1), only("anchor_id", &one), body(&one, -90)];
    rows.extend((1..=12).map(|seconds| body(&one, seconds)));
    rows.extend((1..=3).map(|seconds| body(&two, seconds)));
    let answer = key
        .post(&format!("{PATH}:batch"), only("reality_snapshots", &rows))
        .await
        .assert_status(200);
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
    let many = only("reality_snapshots", vec![body(&one, 1); 101]);
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
    let calls = calls.map(|(anchor, seconds)| key.feed_reality_snapshot(body(anchor, seconds)));
    for (status, fed) in futures_util::future::join_all(calls).await {
        assert_eq!(status, 201, "{fed:#}");
    }
}

/// Returns the header for this number of remaining snapshots.
fn left(calls: usize, seconds: usize) -> String {
    format!(r#""reality_snapshots_per_anchor_and_key";r={calls};t={seconds}"#)
}

/// Returns the remaining calls in the header.
#[track_caller]
fn calls(shown: &Limits) -> u32 {
    let found = shown.left.split_once(";r=").and_then(|(_, rest)| rest.split_once(";t="));
    found.unwrap_or_else(|| panic!("{shown:?}")).0.parse().unwrap()
}

/// A batch is counted at once. The time between two calls therefore does not matter here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_show_what_is_left_for_an_anchor_and_key() {
    let world = World::start().await;
    let (id, key) = feeder(&world).await;
    let named = json!({"source": {"feeder_key_ids": [id]}});
    let anchor = async || world.new_anchor(named.clone()).await;
    let batch = format!("{PATH}:batch");
    let rows = |anchor: &str, count: i64| -> Vec<Value> {
        (1..=count).map(|seconds| body(anchor, seconds)).collect()
    };
    let send = async |rows: Vec<Value>, headers: &[(&str, &str)]| {
        let body = only("reality_snapshots", &rows);
        Limits::of_call(&key, "POST", &batch, Some(&body), headers).await.0
    };
    let one = body(&anchor().await, 1);
    let (first, _) = Limits::of_call(&key, "POST", PATH, Some(&one), &[]).await;
    assert_eq!((first.status, first.left), (201, left(9, 1)));
    assert_eq!(first.policy, r#""reality_snapshots_per_anchor_and_key";q=10;w=10"#);
    // For several anchors, the lowest number of remaining snapshots is shown.
    let (few, many) = (anchor().await, anchor().await);
    let shown = send([rows(&few, 2), rows(&many, 4)].concat(), &[]).await;
    assert_eq!((shown.status, shown.left, &shown.policy), (200, left(6, 4), &first.policy));
    let full = anchor().await;
    let shown = send(rows(&full, 12), &[]).await;
    assert_eq!((shown.status, shown.left), (200, left(0, 10)), "two of twelve are refused");
    let (refused, _) = Limits::of_call(&key, "POST", PATH, Some(&body(&full, 20)), &[]).await;
    assert_eq!((refused.status, refused.left), (429, left(0, 1)));
    assert_eq!(refused.policy, first.policy);
    // A repeated call does not count, and shows the limit as well.
    let (kept, header) = (rows(&anchor().await, 6), [("idempotency-key", "batch")]);
    for _ in 0..2 {
        let shown = send(kept.clone(), &header).await;
        assert!((4..10).contains(&calls(&shown)), "{shown:?}");
    }
    let (single, header) = (body(&anchor().await, 1), [("idempotency-key", "single")]);
    for _ in 0..2 {
        let (shown, _) = Limits::of_call(&key, "POST", PATH, Some(&single), &header).await;
        assert_eq!(shown.status, 201);
        assert!((9..=10).contains(&calls(&shown)), "{shown:?}");
    }
    // The owner has no limit.
    let own = body(&full, 30).with("tenant_id", TENANT);
    let path = "/api/v1/reality-snapshots";
    let (shown, answer) = Limits::of_call(&world.owner, "POST", path, Some(&own), &[]).await;
    assert_eq!((shown.status, shown.left.as_str()), (201, ""), "{answer:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limit_is_in_the_metadata_over_grpc() {
    let world = World::start().await;
    let (id, key) = feeder(&world).await;
    let anchor = world.new_anchor(json!({"source": {"feeder_key_ids": [id]}})).await;
    let base = world.app.base_url().to_owned();
    let mut grpc = RealitySnapshotServiceClient::connect(base).await.unwrap();
    let request = |seconds: i64| {
        let sampled_at = Clock::default().now() - chrono::TimeDelta::seconds(seconds);
        let row = RealitySnapshot {
            anchor_id: anchor.clone(),
            sampled_at: Some(Time::from(sampled_at)),
            content_hash: format!("sha256:{seconds}"),
            ..RealitySnapshot::default()
        };
        let message = FeedRealitySnapshotRequest { reality_snapshot: Some(row) };
        let mut request = Request::new(message);
        let bearer = format!("Bearer {}", key.token).parse().unwrap();
        request.metadata_mut().insert("authorization", bearer);
        request
    };
    let fed = grpc.feed_reality_snapshot(request(1)).await.unwrap();
    assert_eq!(Limits::in_metadata(fed.metadata()), left(9, 1));
    let rows: Vec<_> = (2..=12).map(|seconds| body(&anchor, seconds)).collect();
    let batch = only("reality_snapshots", &rows);
    assert_eq!(key.post(&format!("{PATH}:batch"), batch).await.0, 200);
    let refused = grpc.feed_reality_snapshot(request(20)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert_eq!(Limits::in_metadata(refused.metadata()), left(0, 1));
}
