//! Deletes the counters of windows that closed long ago: nothing reads them any more.

use std::time::Duration;

use authority_model::schema::counters;
use diesel::{dsl::sql, prelude::*, sql_types::Bool};

use crate::{
    clock::Clock,
    store::{self, RunQueryDsl, Scope, Store},
    worker::Worker,
};

const EVERY: Duration = Duration::from_secs(3600);
/// How long a counter is kept after its window closed, in seconds: nodes' clocks differ by less.
const KEPT: i64 = 24 * 3600;

/// Deletes them every hour.
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
