//! Conditions that delay deliveries without using up an attempt.

use std::time::{Duration, Instant};

use authority_keys::Purpose;
use authority_process::clock::Clock;
use authority_verify_webhook::{Options, Suite, verify_webhook};
use chrono::TimeDelta;
use serde_json::Value;

use super::{Answer, Endpoint, Receiver, World};
use crate::support::{Plain, Wishes, only};

#[tokio::test]
async fn nothing_is_sent_for_a_suspended_tenant_and_all_waits_unspent() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    receiver.always(Answer::status(500));
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    world.events(1).await;
    receiver.wait_for(1).await;
    let (status, answer) =
        world.app.owner().update_tenant(&world.tenant_id, only("state", "suspended")).await;
    assert_eq!(status, 200, "{answer:#}");
    tokio::time::sleep(Duration::from_millis(200)).await;
    let before = receiver.received().len();
    receiver.always(Answer::status(200));
    world.events(2).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(receiver.received().len(), before);
    assert_eq!(world.cursor(&made).await["sequence"], 1);
    let (status, _) =
        world.app.owner().update_tenant(&world.tenant_id, only("state", "active")).await;
    assert_eq!(status, 200);
    let ended = world.wait_until_ended(&made, 3).await;
    let attempts: Vec<_> = ended.iter().map(|one| one["attempts"].as_u64().unwrap()).collect();
    assert_eq!(attempts, [u64::try_from(before).unwrap() + 1, 1, 1]);
}

#[tokio::test]
async fn a_node_whose_clock_is_thirty_seconds_off_sends_nothing() {
    let clock = Clock::wrong(TimeDelta::zero());
    let world = World::wished(Wishes { clock: clock.clone(), ..Wishes::default() }).await;
    let receiver = Receiver::start().await;
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    clock.advance(TimeDelta::seconds(31));
    let graph = &world.app.app.graph;
    while graph.clock_distance().is_none_or(|distance| distance < Duration::from_secs(30)) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    world.events(1).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(receiver.received().is_empty());
    clock.advance(TimeDelta::seconds(-31));
    assert_eq!(world.wait_until_ended(&made, 1).await[0]["attempts"], 1);
}

#[tokio::test]
async fn a_revoked_webhook_key_leaves_the_jwks_and_its_successor_signs_when_it_is_known() {
    let clock = Clock::wrong(TimeDelta::zero());
    let world = World::wished(Wishes { clock: clock.clone(), ..Wishes::default() }).await;
    let receiver = Receiver::start().await;
    let keys = &world.app.app.keys;
    let published = |kid: &str| keys.jwks().contains(kid);
    let kid = keys.webhook_signer().unwrap().kid().to_owned(); // the first key signs at once
    assert!(kid.starts_with("svc-webhook-") && published(&kid));
    let evidence = keys.signer(Purpose::Evidence).kid().to_owned();
    keys.revoke(&kid, "test").await.unwrap();
    keys.revoke(&evidence, "test").await.unwrap();
    assert!(!published(&kid) && published(&evidence));
    assert!(published(keys.signer(Purpose::Webhook).kid()));
    assert!(keys.webhook_signer().is_none());

    let waiting = world.endpoint(Endpoint::at(&receiver.base)).await;
    let shared = Endpoint { suites: vec!["standard-webhooks/v1"], ..Endpoint::at(&receiver.base) };
    let shared = world.endpoint(shared).await;
    world.events(1).await;
    world.wait_until_ended(&shared, 1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let open = world.deliveries(&waiting).await.remove(0);
    assert_eq!((open["state"].text(), open["attempts"].number()), ("open", 0));
    clock.advance(TimeDelta::minutes(9));
    assert!(keys.webhook_signer().is_none());
    clock.advance(TimeDelta::minutes(2));
    assert!(keys.webhook_signer().is_some());
}

#[tokio::test]
async fn during_a_rotation_both_secrets_sign() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let rotated = Endpoint { rotated: true, ..Endpoint::at(&receiver.base) };
    let made = world.endpoint(rotated).await;
    world.events(1).await;
    let received = receiver.wait_for(1).await.remove(0);
    assert_eq!(made.secrets.len(), 2);
    let now = u64::try_from(Clock::default().now().timestamp()).unwrap();
    let verified = |secret: &str, received: &super::receiver::Received| {
        let secrets = [secret];
        let options = Options {
            secrets: &secrets,
            accept: &[Suite::StandardWebhooks],
            ..Options::new(&made.url, &world.tenant_id)
        };
        verify_webhook(&received.body, &received.pairs(), &options, now).is_ok()
    };
    assert!(made.secrets.iter().all(|secret| verified(secret, &received)));

    world.run("UPDATE webhook_endpoints SET previous_until = now() - interval '1 second'").await;
    world.events(1).await;
    let received = receiver.wait_for(2).await.remove(1);
    assert!(verified(&made.secrets[0], &received) && !verified(&made.secrets[1], &received));
}

/// Returns the milliseconds from the commit of each event to its arrival.
async fn latencies(world: &World, tenant_id: &str, receiver: &Receiver) -> Vec<u128> {
    let mut all = Vec::new();
    for _ in 0..12 {
        let before = receiver.received().len();
        world.events_of(tenant_id, 1, "svc.authority.suspended").await;
        let committed = Instant::now();
        let received = receiver.wait_for(before + 1).await;
        all.push((received[before].at.saturating_duration_since(committed)).as_millis());
    }
    all.sort_unstable();
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_that_does_not_answer_delays_no_other() {
    let (world, prompt, silent) =
        (World::start().await, Receiver::start().await, Receiver::start().await);
    silent.always(Answer::status(200).after(Duration::from_secs(14)));
    let other = World::tenant(&world.app, "other").await;
    world.endpoint_of(&other, Endpoint::at(&prompt.base)).await;
    let alone = latencies(&world, &other, &prompt).await;
    world.endpoint(Endpoint::at(&silent.base)).await;
    world.events(200).await;
    silent.wait_for(4).await;
    let beside = latencies(&world, &other, &prompt).await;
    assert_eq!(silent.received().len(), 4, "in flight to one endpoint");
    // The worker polls every half second. The rest of the tolerance covers a busy machine.
    let worst = |all: &[u128]| all[all.len() - 2];
    assert!(worst(&beside) * 10 <= worst(&alone) * 12 + 1000, "alone {alone:?}, beside {beside:?}");
    let kept: Vec<Value> = world.rows("SELECT 1 FROM webhook_cursors").await;
    assert_eq!(kept.len(), 2);
}
