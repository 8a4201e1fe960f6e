//! An allow is repeated under its idempotency key only while its request would still be permitted.
//! Once the request would be refused or held, the decision's stream ends as well.

mod doors;
mod own;
mod running;
mod table;
mod world;

use super::{demo, watch::Lines};
use crate::support::TestApp;

/// Changes stored decisions, which are otherwise immutable.
async fn altered(app: &TestApp, statement: &str) {
    let all = format!("SET session_replication_role = replica; {statement}");
    app.database.run(&all).await;
}
