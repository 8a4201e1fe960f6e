//! Rows of the log have up to 64 events. Readers see each event, whatever row it is in.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::PATIENCE;
use crate::{
    events::delivery::{Endpoint, Received, Receiver, World},
    support::{Answered, Client, Members, Plain, new_agent, new_api_key, only},
};

const DELEGATION: &str = "svc.authority.suspended";
const STOP: &str = "svc.actor.stopped";
const AGENT: &str = "svc:agent:acme:bot";

/// Writes this many changes into the outbox in one transaction. Every third is a stop, and the others
/// are suspended delegations. Every fifth is about [`AGENT`].
async fn announce(world: &World, count: usize) {
    world
        .run(&format!(
            "INSERT INTO event_outbox (tenant_id, event_type, subject_ref, principal_entity_id) \
             SELECT '{}', CASE n % 3 WHEN 0 THEN '{STOP}' ELSE '{DELEGATION}' END, 'svc:x:' || n, \
                    CASE n % 5 WHEN 0 THEN '{AGENT}' END \
             FROM generate_series(1, {count}) AS n ORDER BY n",
            world.tenant_id
        ))
        .await;
    let begun = Instant::now();
    while !world.rows("SELECT number FROM event_outbox").await.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "the events are not numbered");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A service with 150 numbered events, and the sizes of their rows.
async fn world() -> (World, Vec<i64>) {
    let world = World::start().await;
    announce(&world, 150).await;
    let rows = world.rows("SELECT size FROM events ORDER BY last_sequence").await;
    let sizes = rows.iter().map(|row| row["size"].as_i64().unwrap()).collect();
    (world, sizes)
}

async fn page(client: &Client, query: &str) -> Value {
    client.get(&format!("/v1/events{query}")).await.assert_status(200)
}

fn sequences(events: &Value) -> Vec<i64> {
    let events = events.as_array().unwrap().iter();
    events.map(|event| event["sequence"].as_i64().unwrap()).collect()
}

/// The sequences of the selected events. The number of an event is also its sequence.
fn those(is_selected: impl Fn(i64) -> bool) -> Vec<i64> {
    (1..=150).filter(|number| is_selected(*number)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_are_numbered_together_share_rows() {
    let (world, sizes) = world().await;
    assert_eq!(sizes, [64, 64, 22]);
    let key = world.app.client(&world.app.api_key(&world.tenant_id, &["events:read"]).await);
    let all = page(&key, "?limit=500").await;
    for (number, event) in (1..).zip(all["events"].as_array().unwrap()) {
        assert_eq!(event["sequence"], number);
        assert_eq!(event["subject_ref"], format!("svc:x:{number}"));
        let expected = if number % 3 == 0 { STOP } else { DELEGATION };
        assert_eq!(event["event_type"], expected);
    }
    let ids = all["events"].as_array().unwrap().iter().map(|event| event["event_id"].as_str());
    let ids: BTreeSet<_> = ids.collect();
    assert_eq!(ids.len(), 150);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_begins_and_ends_within_rows() {
    let (world, _) = world().await;
    let key = world.app.client(&world.app.api_key(&world.tenant_id, &["events:read"]).await);
    for (after, limit) in
        [(0, 1), (0, 64), (0, 65), (30, 40), (63, 2), (64, 64), (127, 1), (149, 9)]
    {
        let page = page(&key, &format!("?after={after}&limit={limit}")).await;
        let last = (after + limit).min(150);
        assert_eq!(sequences(&page["events"]), (after + 1..=last).collect::<Vec<_>>());
        assert_eq!((&page["next_after"], page["head"].number()), (&json!(last), 150));
    }
    let stops = page(&key, &format!("?event_type={STOP}&limit=20")).await;
    assert_eq!(sequences(&stops["events"]), those(|number| number % 3 == 0)[..20]);
    assert_eq!(stops["next_after"], 60);
    let rest = page(&key, &format!("?event_type={STOP}&after=60&limit=500")).await;
    assert_eq!(sequences(&rest["events"]), those(|number| number > 60 && number % 3 == 0));
    assert_eq!(rest["next_after"], 150);
    let none = page(&key, "?event_type=svc.reality.*&limit=1").await;
    assert_eq!((sequences(&none["events"]).len(), none["next_after"].number()), (0, 150));
}

/// Events of other principals in the same rows are not shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_key_sees_only_its_own_events_of_a_row() {
    let (world, _) = world().await;
    let agent = new_agent("bot").with("tenant_id", &world.tenant_id);
    world.app.owner().create_principal(agent).await.assert_status(201);
    let bound = new_api_key("bound", &["events:read"])
        .with("tenant_id", &world.tenant_id)
        .with("principal_ids", [AGENT]);
    let made = world.app.owner().create_api_key(bound).await.assert_status(201);
    let key = world.app.client(made["secret"].as_str().unwrap());
    let own = page(&key, "?limit=500").await;
    assert_eq!(sequences(&own["events"]), those(|number| number % 5 == 0));
    let first = page(&key, "?limit=4").await;
    assert_eq!(
        (sequences(&first["events"]), first["next_after"].number()),
        (vec![5, 10, 15, 20], 20)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_event_of_a_row_is_delivered_and_replayed_on_its_own() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let made =
        world.endpoint(Endpoint { event_types: vec![STOP], ..Endpoint::at(&receiver.base) }).await;
    announce(&world, 150).await;
    let delivered = world.wait_until_ended(&made, 50).await;
    let expected = those(|number| number % 3 == 0);
    assert_eq!(sequences(&json!(delivered)), expected);
    let admin = world.app.person(&world.tenant_id, "admin", "ann@acme.example");
    let events = admin.list_events("limit=500").await.1;
    for (delivery, number) in delivered.iter().zip(&expected) {
        let event = &events["events"][usize::try_from(number - 1).unwrap()];
        assert_eq!(delivery["state"], "delivered");
        assert_eq!((&delivery["event_id"], event["event_type"].text()), (&event["event_id"], STOP));
    }
    let bodies: Vec<Value> = receiver.received().iter().map(Received::event).collect();
    let sent = expected
        .iter()
        .all(|number| bodies.contains(&events["events"][usize::try_from(number - 1).unwrap()]));
    assert!(sent, "{bodies:#?}");

    let one = &events["events"][100];
    let again = admin
        .replay_event(one["event_id"].as_str().unwrap(), only("endpoint_id", &made.id))
        .await
        .assert_status(202);
    let ended = format!(
        "SELECT * FROM webhook_deliveries WHERE id = '{}' AND state = 'delivered'",
        again["delivery_id"].as_str().unwrap()
    );
    let again = world.wait_for(ended).await;
    assert_eq!((&again["event_id"], again["sequence"].number()), (&one["event_id"], 101));

    world.run("UPDATE webhook_deliveries SET state = 'dead' WHERE sequence = 141").await;
    let dead = &delivered[expected.iter().position(|number| *number == 141).unwrap()]["id"];
    admin.redrive_webhook_delivery(dead.as_str().unwrap()).await.assert_status(200);

    let all = json!({"since": "2020-01-01T00:00:00Z", "only": "all"});
    let replay = admin.replay_webhook_endpoint(&made.id, all).await.assert_status(202);
    let done = format!(
        "SELECT * FROM webhook_replays WHERE id = '{}' AND state = 'done'",
        replay["replay_id"].as_str().unwrap()
    );
    let done = world.wait_for(done).await;
    assert_eq!((done["after_sequence"].number(), done["until_sequence"].number()), (0, 150));
    assert_eq!(done["made"], 50);
}

/// Retention deletes whole rows: no event is deleted before its time, and none is skipped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_is_deleted_with_all_its_events() {
    let (world, _) = world().await;
    let days = 32;
    world
        .run(&format!(
            "UPDATE events SET id = time_bound('svc:event:', now() - interval '{days} days') \
                 || substr(id, 23) WHERE last_sequence = 64"
        ))
        .await;
    let retention = authority_events::retention_worker(world.app.database.store());
    crate::support::run_workers([retention]);
    world.wait_for("SELECT oldest FROM event_heads WHERE oldest = 65".to_owned()).await;
    let key = world.app.client(&world.app.api_key(&world.tenant_id, &["events:read"]).await);
    let left = page(&key, "?limit=500").await;
    assert_eq!(sequences(&left["events"]), those(|number| number > 64));
    assert_eq!(key.list_events("after=63").await.0, 409);
}
