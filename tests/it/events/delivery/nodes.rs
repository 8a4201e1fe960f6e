//! Several nodes, and nodes that stop.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::{Answer, Endpoint, Receiver, World};
use crate::support::{Plain, Wishes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_deliver_each_event_once() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let _second = world.app.beside(Wishes::default()).await;
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(world.endpoint(Endpoint::at(&receiver.base)).await);
    }
    world.events(100).await;
    for made in &all {
        let ended = world.wait_until_ended(made, 100).await;
        assert_eq!(ended.len(), 100);
        assert!(ended.iter().all(|one| one["state"] == "delivered" && one["attempts"] == 1));
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    for one in receiver.received() {
        *counts.entry(one.headers["webhook-id"].clone()).or_default() += 1;
    }
    assert_eq!(counts.len(), 100);
    assert!(counts.values().all(|count| *count == 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_together_keep_to_a_rate_limit() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let _second = world.app.beside(Wishes::default()).await;
    let made = world.endpoint(Endpoint { rate: 10, ..Endpoint::at(&receiver.base) }).await;
    world.events(40).await;
    world.wait_until_ended(&made, 40).await;
    let times: Vec<Instant> = receiver.received().iter().map(|one| one.at).collect();
    // The window is below a second, because the time until arrival varies by some milliseconds.
    let window = Duration::from_millis(950);
    for first in &times {
        let within = times.iter().filter(|at| **at >= *first && **at - *first < window);
        assert!(within.count() <= 10);
    }
    assert!(times[39] - times[0] < Duration::from_secs(8), "it was much slower than its limit");
}

#[tokio::test]
async fn who_lost_the_lease_records_nothing_and_a_lease_that_ended_is_taken_over() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    receiver.always(Answer::status(200).after(Duration::from_secs(2)));
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    world.events(1).await;
    receiver.wait_for(1).await;
    // From now on another node holds the lease.
    let other = "UPDATE webhook_deliveries SET lease = gen_random_uuid(), \
                 leased_until = now() + interval '1 hour'";
    world.run(other).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let delivery = world.deliveries(&made).await.remove(0);
    assert_eq!((delivery["state"].text(), delivery["attempts"].number()), ("open", 0));
    assert!(world.attempts(&made).await.is_empty());
    assert_eq!(receiver.received().len(), 1, "a valid lease must not be taken over");
    // The lease expires, as if the other node had been killed.
    world.run("UPDATE webhook_deliveries SET leased_until = now() - interval '1 second'").await;
    let ended = world.wait_until_ended(&made, 1).await.remove(0);
    assert_eq!((ended["state"].text(), ended["attempts"].number()), ("delivered", 1));
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].headers["webhook-id"], received[1].headers["webhook-id"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_finishes_what_is_in_flight_or_releases_it_unspent() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    receiver.answers(|received| {
        let is_first = received.event()["sequence"] == 1;
        Answer::status(200).after(Duration::from_secs(if is_first { 2 } else { 12 }))
    });
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    world.events(2).await;
    receiver.wait_for(2).await;
    let late = world.app.supervisor.stop().await;
    assert!(late.iter().all(|name| !name.starts_with("webhook")), "{late:?}");
    let left = world.deliveries(&made).await;
    assert_eq!((left[0]["state"].text(), left[0]["attempts"].number()), ("delivered", 1));
    assert_eq!((left[1]["state"].text(), left[1]["attempts"].number()), ("open", 0));
    assert!(left[1]["lease"].is_null());
    receiver.always(Answer::status(200));
    let _next = world.app.beside(Wishes::default()).await;
    let ended = world.wait_until_ended(&made, 2).await;
    assert_eq!((ended[1]["state"].text(), ended[1]["attempts"].number()), ("delivered", 1));
}
