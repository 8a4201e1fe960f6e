//! Open streams of permissions while authority changes.

use std::time::{Duration, Instant};

use authority_process::clock::Clock;
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{
    Lines, altered, demo,
    doors::over_rest,
    world::{TENANT, World},
};
use crate::support::{Answered, Members, Plain, asking, new_policy, only};

/// Gets a permission from `evaluate` and watches it.
async fn watched(world: &World, ask: &Value, key: &str) -> Lines {
    let first = over_rest(&world.client, ask, key).await;
    Lines::stops(&world.client, first[0].as_ref().unwrap()).await.0
}

fn told(event: &Value) -> (&str, &str) {
    (event["stop_condition"].as_str().unwrap(), event["reason_code"].as_str().unwrap_or_default())
}

/// Waits longer than the service takes to recheck its streams on a busy machine.
async fn rounds_pass() {
    tokio::time::sleep(Duration::from_secs(4)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_loosens_or_concerns_others_ends_nothing() {
    let world = Box::pin(World::new()).await;
    let agent = world.agent(0).await;
    let mut lines = watched(&world, &agent.asking(true), "one").await;
    world.agent(1).await;
    let tool = format!("tools/{}", agent.tool);
    world.does(("PATCH", tool.clone(), only("description", "pays"))).await;
    world.does(("PATCH", tool, only("access_level", "read"))).await;
    // The delegation becomes narrower, but still covers the permitted request.
    world.does(agent.narrowed(json!({"max_amount": "10", "jurisdictions": ["DE"]}))).await;
    let policy = new_policy("own", "forbid(principal, action, resource);")
        .with("applies_to", ["action:other.do"]);
    world.does(("POST", "policies".to_owned(), policy)).await;
    rounds_pass().await;
    let path = format!("delegations/{}/revoke", agent.delegation);
    world.does(("POST", path, only("reason", "enough"))).await;
    let event = lines.last().await;
    assert_eq!(told(&event), ("delegation.revoked", "delegation_revoked"), "{event:#}");
}

/// Streams that are opened after the change end as well, including a second stream of the same
/// decision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_opened_late_ends_as_well() {
    let world = Box::pin(World::new()).await;
    let agent = world.agent(0).await;
    let first = over_rest(&world.client, &agent.asking(true), "one").await;
    let [one, other] = [0, 1].map(|place| first[place].clone().unwrap());
    world.does(agent.narrowed(only("max_amount", "5"))).await;
    for id in [&one, &other, &one] {
        let (mut lines, _) = Lines::stops(&world.client, id).await;
        let event = lines.last().await;
        assert_eq!(told(&event), ("authority.changed", "constraint_exceeded"), "{event:#}");
    }
}

/// A policy becomes active without a write. The stream wakes on its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_begins_by_the_clock_ends_it_on_time() {
    let world = Box::pin(World::new()).await;
    let agent = world.agent(0).await;
    let from = Clock::default().now() + TimeDelta::seconds(5);
    let target = format!("action:{}", agent.action());
    let policy = json!({"tenant_id": TENANT, "regime": "own", "applies_to": [target],
        "effective_from": from.to_rfc3339(), "cedar": "forbid(principal, action, resource);"});
    world.does(("POST", "policies".to_owned(), policy)).await;
    let mut lines = watched(&world, &agent.asking(true), "one").await;
    let event = lines.last().await;
    assert_eq!(told(&event), ("authority.changed", "policy_denied"), "{event:#}");
    let late = (Clock::default().now() - from).num_milliseconds();
    assert!((0..3000).contains(&late), "{late} ms after it came into force");
    let (code, _) =
        over_rest(&world.client, &agent.asking(true), "one").await[0].clone().unwrap_err();
    assert_eq!(code, "decision_stopped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_back_ends_as_unavailable() {
    let world = Box::pin(World::new()).await;
    let agent = world.agent(0).await;
    let ask = agent.asking(true);
    let mut erased = watched(&world, &ask, "one").await;
    altered(&world.app, "UPDATE decisions SET context = ''").await;
    let mut whole = watched(&world, &ask, "two").await;
    let path = format!("tools/{}", agent.tool);
    // This change stops no permission that can be read. The first can't be read.
    world.does(("PATCH", path, only("access_level", "read"))).await;
    let event = erased.last().await;
    assert_eq!((told(&event), event["kind"].text()), (("authority.unavailable", ""), "stopped"));
    world.does(agent.narrowed(only("max_amount", "5"))).await;
    assert_eq!(told(&whole.last().await), ("authority.changed", "constraint_exceeded"));
}

/// With many streams and a write each second, all streams end in time, simulations continue, and a
/// stop takes effect before the rechecks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_permissions_under_steady_writes_are_judged_and_delay_nobody() {
    const STREAMS: usize = 300;
    let (app, client, delegation) = demo().await;
    let mut streams = Vec::new();
    for batch in 0..STREAMS / 100 {
        let requests: Vec<_> = (0..100)
            .map(|one| {
                let amount = u32::try_from(batch * 100 + one + 1).unwrap();
                asking(f64::from(amount), "DE")
            })
            .collect();
        let (_, answer) = client.batch_evaluate(only("requests", &requests)).await;
        for result in answer["results"].as_array().unwrap() {
            let id =
                result["answer"]["decision_id"].as_str().unwrap_or_else(|| panic!("{result:#}"));
            streams.push(Lines::stops(&client, id).await.0);
        }
    }
    let owner = app.owner();
    let mut slowest = Duration::ZERO;
    for write in 0..6 {
        let body = json!({"tenant_id": TENANT, "name": format!("W{write}")});
        assert_eq!(owner.create_workspace(body).await.0, 201);
        let begun = Instant::now();
        let body = only("request", asking(1.0, "DE"));
        client.simulate_decision(body).await.assert_status(200);
        slowest = slowest.max(begun.elapsed());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    println!("{STREAMS} permissions, a write a second: the slowest simulation {slowest:?}");
    assert!(slowest < Duration::from_secs(3), "{slowest:?}");
    // Half of the permissions exceed the new bound.
    assert_eq!(owner.narrow_delegation(&delegation, only("max_amount", "150")).await.0, 200);
    let begun = Instant::now();
    for (place, lines) in streams.iter_mut().enumerate().skip(150) {
        assert_eq!(
            told(&lines.last().await),
            ("authority.changed", "constraint_exceeded"),
            "{place}"
        );
    }
    println!("{STREAMS} permissions: half of them ended within {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(owner.revoke_delegation(&delegation, Some("enough")).await.0, 200);
    for lines in streams.iter_mut().take(150) {
        assert_eq!(told(&lines.last().await), ("delegation.revoked", "delegation_revoked"));
    }
}
