//! The consequences of failed attempts.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Answer, Endpoint, Made, Receiver, World};
use crate::support::Plain;

async fn state(world: &World, endpoint: &Made) -> Value {
    let sql =
        format!("SELECT state, state_reason FROM webhook_endpoints WHERE id = '{}'", endpoint.id);
    world.rows(&sql).await.remove(0)
}

async fn disabled(world: &World, endpoint: &Made) -> Value {
    let sql = format!(
        "SELECT state_reason FROM webhook_endpoints WHERE id = '{}' AND state = 'disabled'",
        endpoint.id
    );
    world.wait_for(sql).await["state_reason"].clone()
}

#[tokio::test]
async fn an_endpoint_that_answers_410_is_disabled_and_keeps_its_deliveries() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    receiver.always(Answer::status(410));
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    world.events(1).await;
    assert_eq!(disabled(&world, &made).await, "gone");
    world.events(1).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(receiver.received().len(), 1);
    let deliveries = world.deliveries(&made).await;
    assert_eq!((deliveries.len(), deliveries[0]["state"].text()), (1, "open"));
    let versions = format!(
        "SELECT actor, body ->> 'state' AS state FROM record_versions WHERE entity_id = '{}' \
         ORDER BY version DESC LIMIT 1",
        made.id
    );
    let last = world.rows(&versions).await.remove(0);
    assert_eq!(last, json!({"actor": "agent-authority", "state": "disabled"}));
}

#[tokio::test]
async fn five_days_of_failures_alone_disable() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    receiver.always(Answer::status(500));
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    let failing_for = |span: &str| {
        let id = &made.id;
        format!(
            "UPDATE webhook_cursors SET failing_since = now() - interval '{span}' \
             WHERE endpoint_id = '{id}'"
        )
    };
    world.run(&failing_for("4 days 23 hours")).await;
    world.events(1).await;
    receiver.wait_for(1).await;
    world.wait_for("SELECT 1 AS one FROM webhook_deliveries WHERE attempts = 1".to_owned()).await;
    assert_eq!(state(&world, &made).await["state"], "active");
    world.run(&failing_for("5 days")).await;
    assert_eq!(disabled(&world, &made).await, "only_failures");
}

#[tokio::test]
async fn a_success_ends_the_time_of_failures() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let mut count = 0;
    receiver.answers(move |_| {
        count += 1;
        Answer::status(if count == 1 { 500 } else { 200 })
    });
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    world.events(1).await;
    world
        .wait_for("SELECT 1 AS one FROM webhook_cursors WHERE failing_since IS NOT NULL".into())
        .await;
    let ended = world.wait_until_ended(&made, 1).await;
    assert_eq!((ended[0]["state"].text(), ended[0]["attempts"].number()), ("delivered", 2));
    let cursor = world.cursor(&made).await;
    assert!(cursor["failing_since"].is_null() && !cursor["last_success_at"].is_null());
    assert_eq!(cursor["breaker_count"], 0);
}

#[tokio::test]
async fn retry_after_lengthens_and_on_429_the_endpoint_waits() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    // `retry-after` on a 500 delays this delivery beyond the one second of its schedule, but no
    // other delivery of the endpoint.
    receiver.always(Answer::status(500).with("retry-after", "3600"));
    let one = world.endpoint(Endpoint::at(&receiver.base)).await;
    world.events(1).await;
    let waits = "SELECT *, due_at > now() + interval '50 minutes' AS later FROM webhook_deliveries \
                 WHERE attempts = 1";
    assert_eq!(world.wait_for(waits.to_owned()).await["later"], true);
    assert!(world.cursor(&one).await["waits_until"].is_null());
    world
        .run(&format!("UPDATE webhook_endpoints SET state = 'paused' WHERE id = '{}'", one.id))
        .await;

    let busy = Receiver::start().await;
    let mut answers = vec![Answer::status(429).with("retry-after", "3")].into_iter();
    busy.answers(move |_| answers.next().unwrap_or(Answer::status(200)));
    let other = world.endpoint(Endpoint { rate: 1, ..Endpoint::at(&busy.base) }).await;
    world.events(2).await;
    let ended = world.wait_until_ended(&other, 2).await;
    let received = busy.received();
    let gap = received[1].at - received[0].at;
    assert!(gap >= Duration::from_millis(2900), "{gap:?}");
    let attempts: i64 = ended.iter().map(|one| one["attempts"].as_i64().unwrap()).sum();
    assert_eq!(attempts, 3, "the other delivery must wait without an attempt");
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_is_not_followed() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let inside = Receiver::start().await;
    receiver.always(Answer::status(307).with("location", &inside.base));
    let once = Endpoint {
        retry_policy: json!({"strategy": "exponential", "base_seconds": 1,
        "factor": 1.0, "max_delay_seconds": 1, "max_attempts": 1}),
        ..Endpoint::at(&receiver.base)
    };
    let made = world.endpoint(once).await;
    world.events(1).await;
    let ended = world.wait_until_ended(&made, 1).await.remove(0);
    assert_eq!((ended["state"].text(), ended["last_status"].number()), ("dead", 307));
    assert_eq!(ended["last_error"], "http");
    assert!(inside.received().is_empty());
}

#[tokio::test]
async fn addresses_that_are_refused_and_names_that_do_not_resolve_look_alike() {
    let world = World::start().await;
    let mut seen = Vec::new();
    for url in ["https://10.0.0.1/", "https://name.invalid/", "https://169.254.169.254/"] {
        let made = world.endpoint(Endpoint::at(url)).await;
        world.events(1).await;
        world
            .wait_for(format!(
                "SELECT 1 AS one FROM webhook_deliveries WHERE attempts = 1 AND endpoint_id = '{}'",
                made.id
            ))
            .await;
        let mut attempt = world.attempts(&made).await.remove(0);
        for changing in ["id", "at"] {
            attempt.as_object_mut().unwrap().remove(changing);
        }
        seen.push(attempt);
    }
    assert_eq!((seen[0]["error_class"].text(), &seen[0]["latency_ms"]), ("address", &Value::Null));
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:#?}");
}

#[tokio::test]
async fn five_failures_open_a_breaker_with_one_probe_and_others_wait_unspent() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    receiver.always(Answer::status(500));
    let later = json!({"schedule_seconds": [3600, 3600, 3600], "jitter": 0.0});
    let made =
        world.endpoint(Endpoint { retry_policy: later, ..Endpoint::at(&receiver.base) }).await;
    world.events(30).await;
    let id = &made.id;
    world
        .wait_for(format!(
            "SELECT 1 AS one FROM webhook_cursors WHERE endpoint_id = '{id}' AND breaker = 'open'"
        ))
        .await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let before = receiver.received().len();
    // Attempts that were already running when the breaker opened were completed.
    assert!((5..=8).contains(&before), "{before}");
    let spent = "SELECT sum(attempts) AS spent FROM webhook_deliveries";
    assert_eq!(world.rows(spent).await[0]["spent"], before);

    let due =
        format!("UPDATE webhook_cursors SET breaker_until = now() WHERE endpoint_id = '{id}'");
    receiver.always(Answer::status(500).after(Duration::from_millis(1500)));
    world.run(&due).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(receiver.received().len(), before + 1, "one probe at a time");
    world
        .wait_for(format!(
            "SELECT 1 AS one FROM webhook_cursors WHERE endpoint_id = '{id}' \
                            AND breaker = 'open' AND breaker_count = 1"
        ))
        .await;
    assert_eq!(receiver.received().len(), before + 1);

    receiver.always(Answer::status(200));
    world.run(&due).await;
    receiver.wait_for(30).await;
    let done = "SELECT count(*) FROM webhook_deliveries WHERE state = 'delivered' AND attempts = 1";
    world
        .wait_for(format!("SELECT 1 AS one FROM ({done}) AS n WHERE count = {}", 30 - before - 1))
        .await;
    assert_eq!(world.cursor(&made).await["breaker"], "closed");
}

#[tokio::test]
async fn no_second_has_more_attempts_than_the_rate_limit() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let made = world.endpoint(Endpoint { rate: 5, ..Endpoint::at(&receiver.base) }).await;
    world.events(16).await;
    world.wait_until_ended(&made, 16).await;
    let times: Vec<Instant> = receiver.received().iter().map(|one| one.at).collect();
    // The window is below a second, because the time until arrival varies by some milliseconds.
    let window = Duration::from_millis(950);
    for first in &times {
        let within = times.iter().filter(|at| **at >= *first && **at - *first < window);
        assert!(within.count() <= 5);
    }
    assert!(times[15] - times[0] < Duration::from_secs(6), "it was much slower than its limit");
}

#[tokio::test]
async fn an_endpoint_that_fails_is_announced_once_for_each_outage() {
    let (world, receiver, other) =
        (World::start().await, Receiver::start().await, Receiver::start().await);
    receiver.always(Answer::status(500));
    let retry_policy = json!({"schedule_seconds": [1], "jitter": 0.0});
    let made = world.endpoint(Endpoint { retry_policy, ..Endpoint::at(&receiver.base) }).await;
    let event_types = vec!["svc.webhook_endpoint.*"];
    let watching = world.endpoint(Endpoint { event_types, ..Endpoint::at(&other.base) }).await;
    let announced = |kind: &str| {
        format!(
            "SELECT count(*) AS count, min(subject_ref) AS subject FROM notifications \
             WHERE kind = 'webhook_endpoint.{kind}' HAVING count(*) > 0"
        )
    };
    // Two attempts, and the delivery is dead. With four more events there are five failures in a row.
    for (events, kind) in [(1, "dead"), (4, "failing")] {
        world.events(events).await;
        let told = world.wait_for(announced(kind)).await;
        assert_eq!((told["count"].number(), &told["subject"]), (1, &json!(made.id)), "{kind}");
    }
    assert!(!world.cursor(&made).await["failing_since"].is_null());
    // The other endpoint receives both events; the failing endpoint receives no event about itself.
    let delivered = world.wait_until_ended(&watching, 2).await;
    let types: Vec<_> = delivered.iter().map(|one| one["event_type"].clone()).collect();
    assert_eq!(types, ["svc.webhook_endpoint.dead", "svc.webhook_endpoint.failing"]);
    assert_eq!(world.deliveries(&made).await.len(), 5);
    let again = world.rows(&announced("dead")).await;
    assert_eq!(again[0]["count"], 1, "a second dead delivery in the same outage was announced");
}
