//! Permissions that expire before they are recorded. Expiry does not change the revision, and the
//! fence can't detect it. Still, an allow that is recorded too late has no effect.

use std::time::Duration;

use authority_graph as graph;
use authority_process::clock::Clock;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::{deadlines::number, figures::figure, process::allowed};
use crate::support::{Client, Members, TestApp, Wishes, asking, only};

fn now() -> DateTime<Utc> {
    Clock::default().now()
}

async fn sleep_until(at: DateTime<Utc>) {
    tokio::time::sleep((at - now()).to_std().unwrap_or_default()).await;
}

async fn demo() -> (TestApp, Client, String) {
    let node = TestApp::seeded().await;
    let demo = node.demo().await;
    let client = node.client(&demo.api_key);
    let (status, answer) = client.evaluate(allowed()).await;
    assert_eq!((status, &answer["decision"]), (200, &"allow".into()), "{answer}");
    (node, client, demo.delegation_id)
}

async fn keyed(client: &Client, key: &str, ask: Value) -> (u16, Value) {
    client.evaluate_with(ask, &[("idempotency-key", key)]).await
}

/// A batch waits at the fence until the delegation behind a decision in it has expired.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_that_expires_before_the_insert_is_removed_alone_with_its_claims() {
    let (node, client, delegation) = demo().await;
    let ends = now() + TimeDelta::seconds(4);
    let (_, like) = node.owner().get_delegation(&delegation).await;
    let lent = json!({
        "tenant_id": "svc:tenant:acme", "actions": ["payment.*"], "currency": "EUR",
        "delegator_id": like["delegation"]["delegator_id"],
        "delegate_id": like["delegation"]["delegate_id"],
        "max_uses": {"count": 5, "window_seconds": 86400},
        "expires_at": ends.to_rfc3339_opts(SecondsFormat::Micros, true),
    });
    let (status, made) = node.owner().create_delegation(lent).await;
    assert_eq!(status, 201, "{made}");
    let under = asking(1.0, "DE").with("delegation_id", &made["delegation"]["id"]);
    sleep_until(ends - TimeDelta::milliseconds(600)).await;

    let mut owner = node.database.owner().await;
    owner.batch_execute("SELECT pg_advisory_lock(4157001)").await.unwrap();
    let spawn = |ask: Value, key: &'static str| {
        let client = client.clone();
        tokio::spawn(async move { keyed(&client, key, ask).await })
    };
    // The first decision waits at the fence in its own batch. The others form the next batch.
    let first = spawn(allowed(), "first");
    tokio::time::sleep(Duration::from_millis(150)).await;
    let (late, other) = (spawn(under, "late"), spawn(allowed(), "other"));
    sleep_until(ends + TimeDelta::milliseconds(50)).await;
    owner.batch_execute("SELECT pg_advisory_unlock(4157001)").await.unwrap();
    for (status, answer) in [first.await.unwrap(), other.await.unwrap()] {
        assert_eq!((status, &answer["decision"]), (200, &"allow".into()), "{answer}");
    }
    let (status, answer) = late.await.unwrap();
    let found = (status, &answer["decision"], &answer["reason_code"]);
    assert_eq!(found, (200, &"deny".into(), &"delegation_expired".into()), "{answer}");
    let allows = "SELECT count(*) AS n FROM decisions WHERE decision LIKE 'allow%'";
    assert_eq!(number(&mut owner, allows).await, 3, "the late decision was recorded");
    let spent = "SELECT coalesce(sum(used), 0)::bigint AS n FROM counters";
    assert_eq!(number(&mut owner, spent).await, 0, "the late decision has spent budget");
}

/// A single statement records a decision without claims or a key. It also checks the expiry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_that_has_expired_at_the_fence_is_repeated() {
    let (node, client, _) = demo().await;
    let short = only("valid_for_seconds", 1);
    let (status, answer) = node.owner().update_tenant("acme", short).await;
    assert_eq!(status, 200, "{answer}");
    // The first decision stores the facts. The next one stores only itself.
    client.evaluate(allowed()).await;
    let mut owner = node.database.owner().await;
    owner.batch_execute("SELECT pg_advisory_lock(4157001)").await.unwrap();
    let asked = now();
    let late = tokio::spawn({
        let client = client.clone();
        async move { client.evaluate(allowed()).await }
    });
    sleep_until(asked + TimeDelta::milliseconds(1150)).await;
    let released = now();
    owner.batch_execute("SELECT pg_advisory_unlock(4157001)").await.unwrap();
    let (status, answer) = late.await.unwrap();
    assert_eq!((status, &answer["decision"]), (200, &"allow".into()), "{answer}");
    let until: DateTime<Utc> = answer["valid_until"].as_str().unwrap().parse().unwrap();
    assert!(until > released + TimeDelta::milliseconds(900), "{until} was decided before");
}

/// If the commit takes longer than the permission is valid, the decision is stored but not
/// returned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_first_answer_goes_out_past_its_end() {
    let (node, client, _) = demo().await;
    let short = only("valid_for_seconds", 1);
    let (status, answer) = node.owner().update_tenant("acme", short).await;
    assert_eq!(status, 200, "{answer}");
    client.evaluate(allowed()).await;
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN PERFORM pg_sleep(1.3); RETURN NULL; END $$; \
        CREATE TRIGGER slow AFTER INSERT ON decisions \
        FOR EACH STATEMENT EXECUTE FUNCTION slow()";
    node.database.run(slow).await;
    for key in [None, Some("slow")] {
        let headers = key.map(|key| ("idempotency-key", key));
        let headers = headers.as_slice();
        let (status, answer) = client.evaluate_with(allowed(), headers).await;
        assert_eq!((status, &answer["error"]), (503, &"unavailable".into()), "{answer}");
    }
    // The key leads to the decision. The decision is not returned, because it has expired.
    let (status, answer) = keyed(&client, "slow", allowed()).await;
    assert_eq!((status, &answer["error"]), (409, &"decision_stopped".into()), "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("`valid_until`"), "{answer}");
    figure("2 commits that took longer than their permissions", "0 answered past their end");
}

/// The staleness limit permits this clock, but it is too far off to record decisions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_with_a_wrong_time_is_not_recorded() {
    let (node, client, _) = demo().await;
    let generous =
        graph::Settings { max_staleness: Duration::from_secs(60), ..graph::Settings::default() };
    let mut owner = node.database.owner().await;
    let count = "SELECT count(*) AS n FROM decisions";
    let before = number(&mut owner, count).await;
    for (off, wanted) in [(9, 503), (-9, 503), (4, 200), (-4, 200)] {
        let clock = Clock::wrong(TimeDelta::seconds(off));
        let wishes = Wishes { clock, graph: generous, ..Wishes::default() };
        let beside = node.beside(wishes).await;
        let there = beside.client(&client.token);
        let (status, answer) = there.evaluate(allowed()).await;
        assert_eq!(status, wanted, "{off}: {answer}");
        let (status, answer) = keyed(&there, &format!("off{off}"), allowed()).await;
        assert_eq!(status, wanted, "{off}: {answer}");
    }
    assert_eq!(number(&mut owner, count).await - before, 4);
}

/// A node that hangs while it claims a key blocks only that key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_another_node_is_claiming_does_not_block_the_batch() {
    let (node, client, _) = demo().await;
    let (status, answer) = keyed(&client, "before", allowed()).await;
    assert_eq!(status, 200, "{answer}");
    let mut other = node.database.owner().await;
    let claim = "BEGIN; \
        SELECT pg_advisory_xact_lock(hashtextextended( \
            concat_ws(chr(31), 'idempotency_keys', tenant_id, scope, 'hung', caller), 0)) \
        FROM idempotency_keys WHERE key = 'before'; \
        INSERT INTO idempotency_keys \
            (tenant_id, caller, scope, key, request_sha256, decision_id, answer, sealed, created_at) \
        SELECT tenant_id, caller, scope, 'hung', request_sha256, decision_id, answer, sealed, created_at \
        FROM idempotency_keys WHERE key = 'before'";
    other.batch_execute(claim).await.unwrap();
    let hung = tokio::spawn({
        let client = client.clone();
        async move { keyed(&client, "hung", allowed()).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    for n in 0..5 {
        let (status, answer) = keyed(&client, &format!("free{n}"), allowed()).await;
        assert_eq!((status, &answer["decision"]), (200, &"allow".into()), "{answer}");
    }
    // The call waits for the key until its time limit, and reports that the first call is still
    // running.
    let (status, answer) = hung.await.unwrap();
    assert_eq!((status, &answer["error"]), (409, &"idempotency_in_progress".into()), "{answer}");
    // The other node rolls back, which frees the key.
    let waits = tokio::spawn({
        let client = client.clone();
        async move { keyed(&client, "hung", allowed()).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    other.batch_execute("ROLLBACK").await.unwrap();
    let (status, answer) = waits.await.unwrap();
    assert_eq!((status, &answer["decision"]), (200, &"allow".into()), "{answer}");
}
