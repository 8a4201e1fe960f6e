//! An allow is repeated under its idempotency key, and its stream goes on, only while the question would be permitted.

mod doors;
mod own;
mod running;
mod table;
mod world;

use super::{demo, watch::Lines};
use crate::support::TestApp;

/// Alters decisions, which are otherwise immutable.
async fn altered(app: &TestApp, statement: &str) {
    let all = format!("SET session_replication_role = replica; {statement}");
    app.database.run(&all).await;
}
