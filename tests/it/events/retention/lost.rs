//! Events that were deleted before they were sent.

use serde_json::{Value, json};

use super::{Answer, Endpoint, Receiver, World, endpoint_is, old_events, run, set, shown, told};
use crate::support::{Answered, Plain, Wishes, only};

#[tokio::test]
async fn an_open_delivery_of_a_deleted_event_is_cancelled_and_counts_as_lost() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    receiver.always(Answer::status(500));
    let waiting = Endpoint {
        retry_policy: json!({"schedule_seconds": [3600]}),
        ..Endpoint::at(&receiver.base)
    };
    let made = world.endpoint(waiting).await;
    world.events(3).await;
    receiver.wait_for(3).await;
    let tried = format!(
        "SELECT 1 AS one FROM webhook_deliveries WHERE endpoint_id = '{}' AND attempts = 1 \
         HAVING count(*) = 3",
        made.id
    );
    world.wait_for(tried).await;
    endpoint_is(&world, &made, "paused").await;
    world.run(&old_events(32, "last_sequence <= 2")).await;
    run(&world).await;
    let states: Vec<_> =
        world.deliveries(&made).await.iter().map(|one| one["state"].clone()).collect();
    assert_eq!(states, ["cancelled", "cancelled", "open"]);
    let path = format!("/api/v1/webhook-endpoints/{}", made.id);
    let lost = json!({"from": 1, "to": 2});
    assert_eq!(shown(&world, &path, "webhook_endpoint").await["lost"], lost);
    let (_, list) = world.app.owner().list_webhook_endpoints("").await;
    assert_eq!(list["webhook_endpoints"][0]["lost"], lost);
    let (_, patched) = world.app.owner().patch(&path, only("description", "x")).await;
    assert_eq!(patched["webhook_endpoint"]["lost"], lost, "{patched:#}");
    let data = json!({"endpoint_id": made.id, "lost_from": 1, "lost_to": 2});
    assert_eq!(told(&world, "webhook_endpoint.lost").await, [data]);
    run(&world).await;
    assert_eq!(
        told(&world, "webhook_endpoint.lost").await.len(),
        1,
        "the admins must be notified once"
    );

    // The node claims this delivery before retention cancels it.
    let delivery = world.deliveries(&made).await.remove(2)["id"].clone();
    world.run("DELETE FROM events; UPDATE webhook_deliveries SET due_at = now()").await;
    world.run("UPDATE webhook_cursors SET breaker = 'closed', breaker_count = 0").await;
    endpoint_is(&world, &made, "active").await;
    let ended =
        format!("SELECT * FROM webhook_deliveries WHERE id = {delivery} AND state <> 'open'");
    let ended = world.wait_for(ended.replace('"', "'")).await;
    assert_eq!((ended["state"].text(), ended["attempts"].number()), ("cancelled", 1));
    let lost = shown(&world, &path, "webhook_endpoint").await["lost"].clone();
    assert_eq!(lost, json!({"from": 1, "to": 3}));
}

#[tokio::test]
async fn a_dead_delivery_whose_event_is_gone_is_not_redriven() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    receiver.always(Answer::status(500));
    let once = Endpoint {
        retry_policy: json!({"strategy": "exponential", "base_seconds": 1, "factor": 1.0,
                             "max_delay_seconds": 1, "max_attempts": 1}),
        ..Endpoint::at(&receiver.base)
    };
    let made = world.endpoint(once).await;
    world.events(1).await;
    let dead = world.wait_until_ended(&made, 1).await.remove(0);
    assert_eq!(dead["state"], "dead");
    world.run(&old_events(32, "true")).await;
    run(&world).await;
    let refused = world
        .app
        .owner()
        .redrive_webhook_delivery(dead["id"].as_str().unwrap())
        .await
        .assert_status(409);
    assert!(refused.to_string().contains("its event is no longer kept"), "{refused:#}");
    assert_eq!(world.deliveries(&made).await[0]["state"], "dead");
}

#[tokio::test]
async fn an_overtaken_endpoint_and_its_replay_say_what_they_lost_and_go_on() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    endpoint_is(&world, &made, "paused").await;
    world.events(6).await;
    let path = format!("/api/v1/webhook-endpoints/{}", made.id);
    let replay = json!({"since": "2020-01-01T00:00:00Z", "only": "all"});
    let replay = world.app.owner().post(&format!("{path}:replay"), replay).await.assert_status(202);
    let replay_id = replay["replay_id"].as_str().unwrap();
    world.run(&old_events(32, "last_sequence <= 4")).await;
    run(&world).await;
    assert_eq!(world.cursor(&made).await["sequence"], 0);
    endpoint_is(&world, &made, "active").await;
    world.wait_until_ended(&made, 4).await;
    let mut sent: Vec<_> =
        receiver.received().iter().map(|one| one.event()["sequence"].clone()).collect();
    sent.sort_by_key(Value::as_i64);
    assert_eq!(sent, [5, 5, 6, 6]);
    let lost = json!({"from": 1, "to": 4});
    assert_eq!(shown(&world, &path, "webhook_endpoint").await["lost"], lost);
    let replay = shown(&world, &format!("{path}/replays/{replay_id}"), "replay").await;
    assert_eq!((&replay["lost"], replay["state"].text()), (&lost, "done"), "{replay:#}");
    let mut all = told(&world, "webhook_endpoint.lost").await;
    all.sort_by_key(|data| data.get("replay_id").is_some());
    assert_eq!(all[0], json!({"endpoint_id": made.id, "lost_from": 1, "lost_to": 4}));
    assert_eq!((&all[1]["replay_id"], all[1]["lost_to"].number()), (&json!(replay_id), 4));
    assert_eq!(all.len(), 2);
}

#[tokio::test]
async fn an_overtaken_audit_stream_says_what_it_lost_although_its_sink_is_away() {
    // NATS does not listen at this address.
    let nats = Some("nats://127.0.0.1:1".to_owned());
    let world = World::wished(Wishes { nats, ..Wishes::default() }).await;
    let stream = json!({"tenant_id": world.tenant_id, "sink": "nats", "target": "audit.acme"});
    let made = world.app.owner().create_audit_stream(stream).await.assert_status(201);
    let made = &made["audit_stream"];
    assert_eq!((made["cursor"].text(), &made["lost"]), ("0", &Value::Null), "{made:#}");
    let id = made["id"].as_str().unwrap();
    set(&world, &world.tenant_id, only("state", "suspended")).await;
    world.events(5).await;
    world.run(&old_events(32, "last_sequence <= 3")).await;
    run(&world).await;
    world.run("UPDATE audit_cursors SET next_try_at = NULL").await;
    set(&world, &world.tenant_id, only("state", "active")).await;
    let moved = format!("SELECT * FROM audit_cursors WHERE stream_id = '{id}' AND sequence > 0");
    world.wait_for(moved).await;
    let stream = shown(&world, &format!("/api/v1/audit-streams/{id}"), "audit_stream").await;
    let lost = json!({"from": 1, "to": 3});
    assert_eq!((stream["cursor"].text(), &stream["lost"]), ("3", &lost), "{stream:#}");
    let (_, list) = world.app.owner().list_audit_streams("").await;
    assert_eq!(list["audit_streams"][0]["lost"], lost, "{list:#}");
    let data = json!({"audit_stream_id": id, "lost_from": 1, "lost_to": 3});
    assert_eq!(told(&world, "audit_stream.lost").await, [data]);
}
