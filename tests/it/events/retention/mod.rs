//! The retention of events, deliveries and attempts, its exceptions, and the notifications about
//! lost events.

mod kept;
mod lost;
mod partitions;

use std::time::Duration;

use authority_process::worker::Supervisor;
use serde_json::Value;

use super::delivery::{Answer, Endpoint, Made, Receiver, World};
use crate::support::Answered;

/// Runs the retention worker once.
async fn run(world: &World) {
    let supervisor = Supervisor::default();
    supervisor.run([authority_events::retention_worker(world.app.database.store())]);
    for _ in 0..600 {
        if supervisor.statuses().reports()[0].since_success.is_some() {
            supervisor.shutdown().cancel();
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{:?}", supervisor.statuses().reports());
}

/// Returns SQL that makes rows this many days older, by their ids.
fn aged(table: &str, prefix: &str, days: u32, which: &str) -> String {
    let rest = prefix.len() + 13;
    format!(
        "UPDATE {table} SET id = time_bound('{prefix}', now() - interval '{days} days') \
             || substr(id, {rest}) WHERE {which};"
    )
}

fn old_events(days: u32, which: &str) -> String {
    aged("events", "svc:event:", days, which)
}

/// Returns SQL that makes deliveries and their attempts this many days older.
fn old_deliveries(days: u32, which: &str) -> String {
    let attempts = format!("id IN (SELECT id FROM webhook_deliveries WHERE {which})");
    aged("webhook_attempts", "svc:delivery:", days, &attempts)
        + &aged("webhook_deliveries", "svc:delivery:", days, which)
}

async fn one(world: &World, sql: &str) -> Value {
    world.rows(&format!("SELECT ({sql}) AS value")).await.remove(0)["value"].clone()
}

/// Returns the number of the tenant's oldest event according to the log's head, and the count of
/// stored events.
async fn log(world: &World, tenant_id: &str) -> (i64, i64) {
    let oldest = format!("SELECT oldest FROM event_heads WHERE tenant_id = '{tenant_id}'");
    let count =
        format!("SELECT coalesce(sum(size), 0) FROM events WHERE tenant_id = '{tenant_id}'");
    let (oldest, count) = (one(world, &oldest).await, one(world, &count).await);
    (oldest.as_i64().unwrap(), count.as_i64().unwrap())
}

async fn set(world: &World, tenant_id: &str, body: Value) {
    world.app.owner().update_tenant(tenant_id, body).await.assert_status(200);
}

async fn endpoint_is(world: &World, made: &Made, state: &str) {
    world
        .run(&format!("UPDATE webhook_endpoints SET state = '{state}' WHERE id = '{}'", made.id))
        .await;
}

/// The data of the notifications of a kind, newest first.
async fn told(world: &World, kind: &str) -> Vec<Value> {
    let all = format!("SELECT data FROM notifications WHERE kind = '{kind}' ORDER BY id DESC");
    world.rows(&all).await.into_iter().map(|mut row| row["data"].take()).collect()
}

async fn shown(world: &World, path: &str, member: &str) -> Value {
    let (status, mut found) = world.app.owner().get(path).await;
    assert_eq!(status, 200, "{found:#}");
    found[member].take()
}
