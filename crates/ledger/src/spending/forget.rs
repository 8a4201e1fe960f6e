//! Deletes the counters of windows that closed long ago. The service does not read them again.

use std::time::Duration;

use authority_model::schema::counters;
use diesel::{dsl::sql, prelude::*, sql_types::Bool};

use authority_process::{clock::Clock, worker::Worker};
use authority_store::{self as store, RunQueryDsl, Scope, Store};

const EVERY: Duration = Duration::from_secs(3600);
/// How long a counter is kept after its window closed, in seconds. Clocks of nodes differ by less.
const KEPT: i64 = 24 * 3600;

/// Returns a worker that deletes these counters every hour.
pub fn forget(store: Store, clock: Clock) -> Worker {
    Worker::periodic("counters", EVERY, move || {
        forget_closed(store.clone(), clock.now().timestamp())
    })
}

async fn forget_closed(store: Store, now: i64) -> Result<(), store::Error> {
    let scope = Scope::service();
    let forgotten = store.write_tx(&scope, async move |db| {
        let closed = sql::<Bool>("window_start + window_seconds < ")
            .bind::<diesel::sql_types::BigInt, _>(now - KEPT);
        Ok::<_, store::Error>(diesel::delete(counters::table.filter(closed)).execute(db).await?)
    });
    forgotten.await.map(drop)
}
