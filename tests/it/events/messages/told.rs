//! One message for each request and channel, and the message about an expired request.

use std::time::Duration;

use serde_json::json;

use super::{World, formats::check};
use crate::support::{Answered, Wishes, nothing, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_told_once_by_any_number_of_nodes() {
    let world = World::start().await;
    world.ask(24_000.0).await;
    world.chat(&world.bob(), "slack", "bob", nothing()).await;
    let other = world.app.beside(Wishes::default()).await;
    world.ask(25_000.0).await;
    // A repeated request opens no other approval. A channel gets no messages about earlier requests.
    world.ask(25_000.0).await;
    assert_eq!(world.told(1).await, ["bob"]);
    drop(other);
    let _restarted = world.app.beside(Wishes::default()).await;
    assert_eq!(world.told(1).await, ["bob"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_was_told_is_told_when_nobody_decided() {
    let world = World::start().await;
    let bob = world.bob();
    world.chat(&bob, "teams", "bob", nothing()).await;
    let (lapses, decided) = (world.ask(25_000.0).await, world.ask(26_000.0).await);
    assert_eq!(world.told(2).await.len(), 2);
    bob.decline_approval(&decided, "no").await.assert_status(200);
    // A channel that is added now gets no message about the expiry.
    world.chat(&bob, "slack", "late", nothing()).await;
    let end = format!(
        "UPDATE approvals SET expires_at = now() - interval '1 s' \
                       WHERE id IN ('{lapses}', '{decided}')"
    );
    world.run(&end).await;
    world.until(&format!("SELECT state = 'expired' FROM approvals WHERE id = '{lapses}'")).await;
    let all = world.received(3).await;
    assert_eq!(all.len(), 3, "{all:#?}");
    let lapse = all[2].event();
    check("teams", &lapse);
    assert!(lapse.to_string().contains("A request expired without a decision"), "{lapse:#}");
    assert!(lapse.to_string().contains(&lapses.replace(':', "%3A")), "{lapse:#}");
    world.until("SELECT count(*) = 0 FROM messages WHERE state IN ('open', 'sent')").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_ended_before_its_message_is_not_told() {
    let world = World::start().await;
    let bob = world.bob();
    // All day is quiet.
    let quiet = json!({"quiet_hours": {"from": "00:00", "to": "00:00", "time_zone": "UTC"}});
    let id = world.chat(&bob, "slack", "bob", quiet).await;
    let lapses = world.ask(25_000.0).await;
    world
        .until("SELECT count(*) = 1 FROM messages WHERE next_at > now() + interval '1 minute'")
        .await;
    let end =
        format!("UPDATE approvals SET expires_at = now() - interval '1 s' WHERE id = '{lapses}'");
    world.run(&end).await;
    world.run("UPDATE messages SET next_at = now()").await;
    world.until("SELECT count(*) = 1 FROM messages WHERE state = 'skipped'").await;
    // After the quiet hours, the channel gets the message.
    world.ask(26_000.0).await;
    world
        .until(
            "SELECT count(*) = 1 FROM messages WHERE state = 'open' AND attempts = 0 \
                   AND next_at > now() + interval '1 minute'",
        )
        .await;
    let path = format!("{}/{id}", super::LIST);
    assert_eq!(bob.call("PUT", &path, Some(only("label", "Loud")), &[]).await.0, 200);
    world.run("UPDATE messages SET next_at = now() WHERE state = 'open'").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(world.told(1).await, ["bob"]);
}
