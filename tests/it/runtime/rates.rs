//! Limits on the decisions of a tenant and of an API key, shared by all nodes.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{asking, demo};
use crate::support::{Answered, BATCH_EVALUATE, Client, EVALUATE, TENANT, Wishes, only};

fn at_most(per_second: Option<i32>) -> Value {
    only("decisions_per_second", per_second)
}

/// Makes this many calls at once and returns the number of decisions.
async fn decided(client: &Client, calls: usize) -> usize {
    let asked = (0..calls).map(|_| client.evaluate(asking(1.0, "DE")));
    let answers = join_all(asked).await;
    for (status, answer) in &answers {
        assert!(*status == 200 || answer["error"] == "rate_limited", "{status}: {answer:#}");
    }
    answers.iter().filter(|(status, _)| *status == 200).count()
}

/// Calls continuously, above the limit, and returns the number of decisions.
async fn decided_within(client: &Client, time: Duration) -> usize {
    let begun = Instant::now();
    let mut all = 0;
    while begun.elapsed() < time {
        all += decided(client, 8).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    all
}

/// The limit applies to both nodes together. Either node alone could reach it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_together_keep_to_a_tenants_limit() {
    let (app, client, _) = demo().await;
    let second = app.beside(Wishes::default()).await;
    let there = second.client(&client.token);
    app.owner().update_tenant("acme", at_most(Some(10))).await.assert_status(200);
    // Waits until the other node has the limit.
    second.app.graph.catch_up().await;
    let begun = Instant::now();
    let time = Duration::from_secs(5);
    let (here, there) = tokio::join!(decided_within(&client, time), decided_within(&there, time));
    // The limit permits ten decisions at once, and ten more for each second since.
    let most = 10.0 + 10.0 * begun.elapsed().as_secs_f64() + 1.0;
    let both = f64::from(u32::try_from(here + there).unwrap());
    assert!((35.0..=most).contains(&both), "{here} and {there}, {most} at most");
    assert!(here > 0 && there > 0, "{here} and {there}");
    // Without a limit, the tenant's 30 simultaneous decisions are all made.
    app.owner().update_tenant("acme", at_most(None)).await.assert_status(200);
    assert_eq!(decided(&client, 30).await, 30);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_keys_limit_is_its_own_and_says_when_to_ask_again() {
    let (app, client, _) = demo().await;
    let other = app.client(&app.api_key(TENANT, &["runtime:write"]).await);
    let id = format!("svc:api_key:{}", other.token.split('_').nth(2).unwrap());
    app.owner().update_api_key(&id, at_most(Some(1))).await.assert_status(200);
    let batch = only("requests", vec![asking(1.0, "DE"); 3]);
    other.batch_evaluate(batch).await.assert_status(200);
    // The batch used up three seconds of the key's rate.
    let begun = Instant::now();
    let request = other.http.post(format!("{}{EVALUATE}", other.base)).bearer_auth(&other.token);
    let refused = request.json(&asking(1.0, "DE")).send().await.unwrap();
    assert_eq!(refused.status(), 429);
    let after: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((2..=3).contains(&after), "{after}");
    assert_eq!(decided(&client, 5).await, 5, "another key is not limited");
    tokio::time::sleep(Duration::from_secs(after).saturating_sub(begun.elapsed())).await;
    assert_eq!(decided(&other, 1).await, 1);
}

/// An answer with its headers for limits: the remaining calls and the limits themselves.
struct Shown {
    status: u16,
    left: Option<String>,
    policy: Option<String>,
    body: Value,
}

impl Shown {
    async fn of(client: &Client, path: &str, body: &Value, key: Option<&str>) -> Self {
        let request = client.http.post(format!("{}{path}", client.base)).bearer_auth(&client.token);
        let request = key.into_iter().fold(request, |all, key| all.header("idempotency-key", key));
        let answer = request.json(body).send().await.unwrap();
        let header = |name: &str| Some(answer.headers().get(name)?.to_str().unwrap().to_owned());
        let (left, policy) = (header("ratelimit"), header("ratelimit-policy"));
        Self { status: answer.status().as_u16(), left, policy, body: answer.json().await.unwrap() }
    }

    fn left(&self) -> &str {
        self.left.as_deref().unwrap_or_default()
    }
}

const KEYS_POLICY: &str = r#""decisions_per_api_key";q=5;w=1"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_show_what_is_left_of_a_limit() {
    let (app, client, _) = demo().await;
    let ask = asking(1.0, "DE");
    let unlimited = Shown::of(&client, EVALUATE, &ask, None).await;
    assert_eq!((unlimited.status, &unlimited.left, &unlimited.policy), (200, &None, &None));
    let other = app.client(&app.api_key(TENANT, &["runtime:write"]).await);
    let id = format!("svc:api_key:{}", other.token.split('_').nth(2).unwrap());
    app.owner().update_api_key(&id, at_most(Some(5))).await.assert_status(200);
    let first = Shown::of(&other, EVALUATE, &ask, None).await;
    assert_eq!((first.status, first.left()), (200, r#""decisions_per_api_key";r=4;t=1"#));
    assert_eq!(first.policy.as_deref(), Some(KEYS_POLICY));
    let still = Shown::of(&client, EVALUATE, &ask, None).await;
    assert_eq!((still.status, &still.left), (200, &None), "another key has no limit");
    // If many calls are made at once, at least one is refused, with the limit and the window.
    let many = (0..30).map(|_| Shown::of(&other, EVALUATE, &ask, None));
    let refused = join_all(many).await.into_iter().find(|one| one.status == 429).unwrap();
    assert!(refused.left().starts_with(r#""decisions_per_api_key";r=0;t="#), "{}", refused.left());
    assert_eq!(refused.policy.as_deref(), Some(KEYS_POLICY));
    let text = refused.body["message"].as_str().unwrap();
    assert!(text.contains("5 decisions a second"), "{text}");
    assert_eq!(refused.body["details"], json!([]), "headers only: {:#}", refused.body);
}

/// The limits of the tenant and of the key are both counted and shown. Each decision of a batch counts,
/// and a repeated answer does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_limits_are_shown_for_batches_and_repeats() {
    let (app, client, _) = demo().await;
    let other = app.client(&app.api_key(TENANT, &["runtime:write"]).await);
    let id = format!("svc:api_key:{}", other.token.split('_').nth(2).unwrap());
    app.owner().update_api_key(&id, at_most(Some(10))).await.assert_status(200);
    app.owner().update_tenant("acme", at_most(Some(100))).await.assert_status(200);
    let batch = only("requests", vec![asking(1.0, "DE"); 3]);
    let answer = Shown::of(&other, BATCH_EVALUATE, &batch, None).await;
    let both = r#""decisions_per_api_key";r=7;t=1, "decisions_per_tenant";r=97;t=1"#;
    assert_eq!((answer.status, answer.left()), (200, both), "{:#}", answer.body);
    let of_tenant = Shown::of(&client, EVALUATE, &asking(1.0, "DE"), None).await;
    let policy = r#""decisions_per_tenant";q=100;w=1"#;
    assert_eq!(of_tenant.policy.as_deref(), Some(policy), "a key without a limit of its own");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let first = Shown::of(&other, EVALUATE, &asking(1.0, "DE"), Some("once")).await;
    assert!(first.left().starts_with(r#""decisions_per_api_key";r=9;t=1, "#), "{}", first.left());
    tokio::time::sleep(Duration::from_millis(150)).await;
    let again = Shown::of(&other, EVALUATE, &asking(1.0, "DE"), Some("once")).await;
    assert_eq!(again.body["decision_id"], first.body["decision_id"]);
    assert!(again.left().starts_with(r#""decisions_per_api_key";r=10;t=1, "#), "{}", again.left());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_are_checked_and_listed() {
    let (app, client, _) = demo().await;
    for bad in [0, -1, 100_001] {
        let body = only("decisions_per_second", bad);
        let answer = app.owner().update_tenant("acme", body).await.assert_status(400);
        assert!(answer["message"].as_str().unwrap().contains("decisions_per_second"), "{answer:#}");
    }
    app.owner().update_tenant("acme", at_most(Some(50))).await.assert_status(200);
    let id = format!("svc:api_key:{}", client.token.split('_').nth(2).unwrap());
    app.owner().update_api_key(&id, at_most(Some(5))).await.assert_status(200);
    let (_, listed) = app.owner().list_rate_limits("").await;
    let own: Vec<_> = listed["rate_limits"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|limit| !limit["tenant_id"].is_null())
        .collect();
    let expected = json!([
        {"name": "decisions_per_api_key", "limit": 5, "window_seconds": 1,
         "tenant_id": TENANT, "api_key_id": id},
        {"name": "decisions_per_tenant", "limit": 50, "window_seconds": 1,
         "tenant_id": TENANT, "api_key_id": null},
    ]);
    assert_eq!(json!(own), expected);
}
