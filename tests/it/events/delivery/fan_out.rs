//! The events that become deliveries.

use serde_json::{Value, json};

use super::{Answer, Endpoint, Receiver, World};
use crate::support::Plain;

fn sequences(deliveries: &[Value]) -> Vec<i64> {
    deliveries.iter().map(|one| one["sequence"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn types_and_filter_decide_and_an_error_is_no_match_but_counted() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let typed = Endpoint {
        event_types: vec!["svc.authority.revoked", "svc.decision.*"],
        ..Endpoint::at(&receiver.base)
    };
    let typed = world.endpoint(typed).await;
    let filtered =
        Endpoint { filter: Some("sequence > 2 && sequence != 4"), ..Endpoint::at(&receiver.base) };
    let filtered = world.endpoint(filtered).await;
    let failing = Endpoint { filter: Some("data.depth > 1"), ..Endpoint::at(&receiver.base) };
    let failing = world.endpoint(failing).await;
    world.events(3).await;
    world.events_of(&world.tenant_id, 2, "svc.authority.revoked").await;
    for endpoint in [&typed, &filtered, &failing] {
        let id = &endpoint.id;
        let at = format!(
            "SELECT 1 AS one FROM webhook_cursors WHERE endpoint_id = '{id}' AND sequence = 5"
        );
        world.wait_for(at).await;
    }
    assert_eq!(sequences(&world.deliveries(&typed).await), [4, 5]);
    assert_eq!(sequences(&world.deliveries(&filtered).await), [3, 5]);
    assert_eq!(sequences(&world.deliveries(&failing).await), [0; 0]);
    assert_eq!(world.cursor(&failing).await["filter_errors"], 5);
    assert_eq!(world.cursor(&filtered).await["filter_errors"], 0);
}

#[tokio::test]
async fn a_paused_endpoints_cursor_stands_still() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let paused = world.endpoint(Endpoint::at(&receiver.base)).await;
    let other = world.endpoint(Endpoint::at(&receiver.base)).await;
    let set = |state: &str| {
        format!("UPDATE webhook_endpoints SET state = '{state}' WHERE id = '{}'", paused.id)
    };
    world.run(&set("paused")).await;
    world.events(3).await;
    world.wait_until_ended(&other, 3).await;
    assert_eq!(world.cursor(&paused).await["sequence"], 0);
    world.run(&set("active")).await;
    assert_eq!(sequences(&world.wait_until_ended(&paused, 3).await), [1, 2, 3]);
}

#[tokio::test]
async fn what_retention_took_is_lost_and_said() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    let set = |state: &str| {
        format!("UPDATE webhook_endpoints SET state = '{state}' WHERE id = '{}'", made.id)
    };
    world.run(&set("paused")).await;
    world.events(5).await;
    world.run("DELETE FROM events WHERE last_sequence <= 3").await;
    world.run(&set("active")).await;
    assert_eq!(sequences(&world.wait_until_ended(&made, 2).await), [4, 5]);
    let cursor = world.cursor(&made).await;
    assert_eq!((cursor["lost_from"].number(), cursor["lost_to"].number()), (1, 3));

    world.run(&set("paused")).await;
    world.events(2).await;
    world.run("DELETE FROM events").await;
    world.run(&set("active")).await;
    let at =
        format!("SELECT * FROM webhook_cursors WHERE endpoint_id = '{}' AND sequence = 7", made.id);
    let cursor = world.wait_for(at).await;
    assert_eq!((cursor["lost_from"].number(), cursor["lost_to"].number()), (1, 7));
}

#[tokio::test]
async fn a_receiver_that_is_gone_costs_no_more_than_ten_thousand_rows() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    receiver.always(Answer::status(500));
    let gone = Endpoint {
        retry_policy: json!({"schedule_seconds": [3600]}),
        ..Endpoint::at(&receiver.base)
    };
    let gone = world.endpoint(gone).await;
    world.events(10_600).await;
    let id = &gone.id;
    world
        .wait_for(format!(
            "SELECT 1 AS one FROM webhook_cursors WHERE endpoint_id = '{id}' AND sequence = 10000"
        ))
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let count = format!("SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = '{id}'");
    assert_eq!(world.rows(&count).await[0]["count"], 10_000);
    assert_eq!(world.cursor(&gone).await["sequence"], 10_000);
    // The unreachable endpoint does not delay another endpoint of the tenant.
    let prompt = Receiver::start().await;
    let made = world.endpoint(Endpoint::at(&prompt.base)).await;
    world.events(1).await;
    world.wait_until_ended(&made, 1).await;
}
