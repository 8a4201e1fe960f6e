//! Deliveries that a node has claimed in advance and then must not send.

use std::time::Duration;

use serde_json::json;

use super::{Answer, Endpoint, Made, Receiver, World};
use crate::support::Wishes;

/// The number of simultaneous attempts for an endpoint.
const RUNNING: usize = 4;

/// Returns an endpoint with a receiver that gives this answer. The endpoint's maximum number of
/// attempts is running, and the node has claimed more deliveries.
async fn waiting(world: &World, receiver: &Receiver, answer: Answer) -> Made {
    receiver.always(answer);
    let later = json!({"schedule_seconds": [3600], "jitter": 0.0});
    let made =
        world.endpoint(Endpoint { retry_policy: later, ..Endpoint::at(&receiver.base) }).await;
    world.events(30).await;
    receiver.wait_for(RUNNING).await;
    let ahead =
        "SELECT 1 AS one FROM webhook_deliveries WHERE state = 'open' AND lease IS NOT NULL";
    world.wait_for(format!("{ahead} GROUP BY endpoint_id HAVING count(*) > {RUNNING}")).await;
    made
}

async fn wait_until_released(world: &World) {
    let leased = "SELECT FROM webhook_deliveries WHERE state = 'open' AND lease IS NOT NULL";
    world.wait_for(format!("SELECT 1 AS one WHERE NOT EXISTS ({leased})")).await;
}

/// Returns the number of attempts, and the number of deliveries that were attempted.
async fn spent(world: &World) -> (u64, u64) {
    let sql = "SELECT sum(attempts) AS spent, count(*) FILTER (WHERE attempts > 0) AS by \
               FROM webhook_deliveries";
    let row = world.rows(sql).await.remove(0);
    (row["spent"].as_u64().unwrap(), row["by"].as_u64().unwrap())
}

#[tokio::test]
async fn a_failure_that_holds_an_endpoint_releases_what_waits_and_none_of_it_is_sent() {
    for (answer, most) in [
        (Answer::status(410), RUNNING),
        (Answer::status(429).with("retry-after", "600"), RUNNING),
        (Answer::status(503).with("retry-after", "600"), RUNNING),
        // The fifth failure in a row opens the breaker. Attempts that are already running are
        // completed.
        (Answer::status(500), 8),
    ] {
        let (world, receiver) = (World::start().await, Receiver::start().await);
        let status = answer.status;
        waiting(&world, &receiver, answer.after(Duration::from_millis(700))).await;
        wait_until_released(&world).await;
        let sent = receiver.received().len();
        assert!((RUNNING..=most).contains(&sent), "{status}: {sent}");
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(receiver.received().len(), sent, "{status}");
        let sent = u64::try_from(sent).unwrap();
        assert_eq!(
            spent(&world).await,
            (sent, sent),
            "{status}: a release must not spend an attempt"
        );
    }
}

#[tokio::test]
async fn what_holds_an_endpoint_between_claim_and_sending_is_noticed() {
    for (hold, free) in [
        ("UPDATE tenants SET state = 'suspended'", "UPDATE tenants SET state = 'active'"),
        (
            "UPDATE webhook_endpoints SET state = 'paused'",
            "UPDATE webhook_endpoints SET state = 'active'",
        ),
        // Another node has recorded a wait.
        (
            "UPDATE webhook_cursors SET waits_until = now() + interval '1 h'",
            "UPDATE webhook_cursors SET waits_until = NULL",
        ),
    ] {
        let (world, receiver) = (World::start().await, Receiver::start().await);
        let slow = Answer::status(200).after(Duration::from_secs(2));
        let made = waiting(&world, &receiver, slow).await;
        world.run(hold).await;
        wait_until_released(&world).await;
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(receiver.received().len(), RUNNING, "{hold}");
        receiver.always(Answer::status(200));
        world.run(free).await;
        let ended = world.wait_until_ended(&made, 30).await;
        let once = |one: &serde_json::Value| one["state"] == "delivered" && one["attempts"] == 1;
        assert!(ended.iter().all(once), "{hold}");
    }
}

#[tokio::test]
async fn a_breaker_that_another_node_opens_is_noticed_before_the_next_is_sent() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let failing = Answer::status(500).after(Duration::from_secs(1));
    waiting(&world, &receiver, failing).await;
    let open =
        "UPDATE webhook_cursors SET breaker = 'open', breaker_until = now() + interval '1 h'";
    world.run(open).await;
    wait_until_released(&world).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(receiver.received().len(), RUNNING);
    assert_eq!(spent(&world).await, (4, 4));
}

#[tokio::test]
async fn a_change_of_the_endpoint_applies_to_what_is_claimed_already() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let slow = Answer::status(200).after(Duration::from_secs(1));
    let made = waiting(&world, &receiver, slow).await;
    receiver.always(Answer::status(200));
    let url = format!("UPDATE webhook_endpoints SET url = '{}/moved'", receiver.base);
    world.run(&url).await;
    let ended = world.wait_until_ended(&made, 30).await;
    assert!(ended.iter().all(|one| one["state"] == "delivered" && one["attempts"] == 1));
    let received = receiver.received();
    let moved = received.iter().filter(|one| one.path == "/moved").count();
    assert_eq!((received.len(), moved), (30, 30 - RUNNING));
}

#[tokio::test]
async fn what_waits_of_a_deleted_endpoint_is_cancelled_and_not_sent() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let slow = Answer::status(200).after(Duration::from_secs(1));
    let made = waiting(&world, &receiver, slow).await;
    let (status, answer) = world.app.owner().delete_webhook_endpoint(&made.id).await;
    assert!((200..300).contains(&status), "{answer:#}");
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(receiver.received().len(), RUNNING);
    let open = "SELECT 1 AS one FROM webhook_deliveries WHERE state = 'open'";
    assert!(world.rows(open).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_releases_what_waits_at_once() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let slow = Answer::status(200).after(Duration::from_secs(2));
    let made = waiting(&world, &receiver, slow).await;
    let supervisor = world.app.supervisor.clone();
    let stopping = tokio::spawn(async move { supervisor.stop().await });
    // Claimed deliveries are released without waiting for the running attempts.
    let leased = "SELECT 1 AS one FROM webhook_deliveries WHERE state = 'open' \
                  HAVING count(*) FILTER (WHERE lease IS NOT NULL) <= 4 AND count(*) = 30";
    world.wait_for(leased.to_owned()).await;
    let late = stopping.await.unwrap();
    assert!(late.iter().all(|name| !name.starts_with("webhook")), "{late:?}");
    wait_until_released(&world).await;
    assert_eq!(receiver.received().len(), RUNNING, "no new attempt may start");
    assert_eq!(spent(&world).await, (4, 4));
    receiver.always(Answer::status(200));
    let _next = world.app.beside(Wishes::default()).await;
    let ended = world.wait_until_ended(&made, 30).await;
    assert!(ended.iter().all(|one| one["state"] == "delivered" && one["attempts"] == 1));
    assert_eq!(receiver.received().len(), 30);
}
