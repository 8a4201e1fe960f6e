//! Alerts about late deliveries count the service's own delays, and not delays by a tenant or a
//! receiver.

use std::time::{Duration, Instant};

use agent_authority::telemetry::Recorder;
use authority_graph as graph;
use authority_store::new_id;
use serde_json::json;

use super::{Answer, Endpoint, Receiver, World};
use crate::support::Wishes;

/// Allows a stale graph for a while: the whole node runs on one thread, which is busy at the start.
fn patient() -> Wishes {
    let max_staleness = Duration::from_secs(60);
    Wishes { graph: graph::Settings { max_staleness, ..Default::default() }, ..Wishes::default() }
}

/// Returns the value of a time series, by its exported name and labels.
fn value(metrics: &Recorder, series: &str) -> f64 {
    let scraped = metrics.render();
    let line = scraped.lines().find_map(|line| line.strip_prefix(&format!("{series} ")));
    line.map_or(f64::NAN, |rest| rest.trim().parse().unwrap())
}

fn oldest(metrics: &Recorder) -> f64 {
    value(metrics, "authority_webhook_oldest_due_seconds")
}

fn held(metrics: &Recorder, by: &str) -> f64 {
    value(metrics, &format!("authority_webhook_held_deliveries{{by=\"{by}\"}}"))
}

/// Makes all open deliveries overdue by more than the alert permits.
const LONG: &str =
    "UPDATE webhook_deliveries SET due_at = now() - interval '1000 s' WHERE state = 'open'";

/// Waits until the condition holds. Metrics are measured every 15 s.
async fn until(metrics: &Recorder, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", metrics.render());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Adds a delivery that is due and not sent, as if a worker had leased it and stopped.
async fn neglect(world: &World, receiver: &Receiver) {
    let wished =
        Endpoint { event_types: vec!["svc.authority.revoked"], ..Endpoint::at(&receiver.base) };
    let endpoint = world.endpoint(wished).await;
    world
        .run(&format!(
            "INSERT INTO webhook_deliveries (id, tenant_id, endpoint_id, event_id, event_type, sequence, due_at, \
                 lease, leased_until) \
             SELECT 'svc:delivery:{}', tenant_id, '{}', id, event_types, last_sequence, now() - interval '1000 s', \
                 gen_random_uuid(), now() + interval '1 h' \
             FROM events WHERE tenant_id = '{}' ORDER BY last_sequence DESC LIMIT 1",
            new_id(),
            endpoint.id,
            world.tenant_id
        ))
        .await;
}

/// The test runs on one thread, with its own metrics recorder.
#[tokio::test]
async fn what_something_holds_is_not_late_and_counted_by_what_holds_it() {
    let recorder = Recorder::default();
    let metrics = recorder.clone();
    let _own = ::metrics::set_default_local_recorder(&recorder);
    let world = World::wished(patient()).await;
    let (failing, busy, healthy) =
        (Receiver::start().await, Receiver::start().await, Receiver::start().await);
    failing.always(Answer::status(500));
    busy.always(Answer::status(429).with("retry-after", "86400"));
    let policy = json!({"schedule_seconds": [1, 3600], "jitter": 0.0});
    for base in [&failing.base, &busy.base, &healthy.base] {
        // Leaves out the events that announce failing endpoints.
        let event_types = vec!["svc.authority.*"];
        let wished = Endpoint { retry_policy: policy.clone(), event_types, ..Endpoint::at(base) };
        world.endpoint(wished).await;
    }
    let paused = world.endpoint(Endpoint::at(&healthy.base)).await;
    let suspended = World::tenant(&world.app, "suspended").await;
    let wished = Endpoint { retry_policy: policy.clone(), ..Endpoint::at(&failing.base) };
    world.endpoint_of(&suspended, wished).await;
    world.events_of(&suspended, 1, "svc.authority.suspended").await;
    world.events(8).await;
    let held_by = "SELECT 1 AS one FROM webhook_cursors \
                   HAVING count(*) FILTER (WHERE breaker <> 'closed') > 0 \
                      AND count(*) FILTER (WHERE waits_until > now()) > 0";
    world.wait_for(held_by.to_owned()).await;
    // The hold lasts longer than the test, and longer than the wait for a probe.
    world
        .run(&format!(
            "UPDATE webhook_cursors SET breaker_until = now() + interval '1 h' WHERE breaker <> 'closed'; \
             UPDATE tenants SET state = 'suspended' WHERE id = '{suspended}'; \
             UPDATE webhook_endpoints SET state = 'paused', state_reason = 'asked' WHERE id = '{0}'; \
             UPDATE webhook_deliveries SET state = 'open', ended_at = NULL WHERE endpoint_id = '{0}'; {LONG}",
            paused.id
        ))
        .await;
    until(&metrics, || {
        ["breaker", "retry_after", "endpoint", "tenant"].iter().all(|by| held(&metrics, by) >= 1.0)
    })
    .await;
    assert!(oldest(&metrics) < 60.0, "counted as late: {}", metrics.render());
    let lanes = ["first", "retry", "replay"];
    let due = lanes.map(|lane| {
        value(&metrics, &format!("authority_webhook_due_deliveries{{lane=\"{lane}\"}}"))
    });
    assert!(due.iter().all(|due| *due < 1.0), "{due:?}");
    // The delay of a delivery counts from the end of its hold.
    world
        .run("UPDATE webhook_cursors SET waits_until = now() - interval '20 s' WHERE waits_until IS NOT NULL; \
              UPDATE webhook_deliveries SET lease = gen_random_uuid(), leased_until = now() + interval '1 h' \
              WHERE state = 'open'")
        .await;
    until(&metrics, || oldest(&metrics) >= 20.0).await;
    assert!(oldest(&metrics) < 90.0, "{}", metrics.render());
    neglect(&world, &healthy).await;
    until(&metrics, || oldest(&metrics) >= 1000.0).await;
}

/// One endpoint is limited by its simultaneous attempts, the other by its rate.
#[tokio::test]
async fn what_an_endpoint_takes_slowly_is_not_late() {
    let recorder = Recorder::default();
    let metrics = recorder.clone();
    let _own = ::metrics::set_default_local_recorder(&recorder);
    let world = World::wished(patient()).await;
    let (slow, fast) = (Receiver::start().await, Receiver::start().await);
    slow.always(Answer::status(204).after(Duration::from_secs(3)));
    world.endpoint(Endpoint::at(&slow.base)).await;
    world.endpoint(Endpoint { rate: 1, ..Endpoint::at(&fast.base) }).await;
    world.events(400).await;
    let made = "SELECT 1 AS one FROM webhook_deliveries HAVING count(*) >= 800".to_owned();
    world.wait_for(made).await;
    world.run(LONG).await;
    // Waits until the service has seen how the receivers respond, and for the next measurement.
    let sent = fast.received().len();
    for more in [5, 10, 15] {
        fast.wait_for(sent + more).await;
    }
    let counted = "authority_worker_runs_total{name=\"webhook_metrics\",ok=\"true\"}";
    let runs = value(&metrics, counted);
    until(&metrics, || value(&metrics, counted) > runs).await;
    assert!(oldest(&metrics) < 60.0, "counted as late: {}", metrics.render());
    assert!(value(&metrics, "authority_webhook_due_deliveries{lane=\"first\"}") > 100.0);
    // Slow endpoints do not hide a delivery that is late.
    neglect(&world, &fast).await;
    until(&metrics, || oldest(&metrics) >= 1000.0).await;
}
