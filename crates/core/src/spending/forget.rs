//! Counters of windows that have long closed: nothing will ask for them again.

use std::time::Duration;

use authority_model::schema::counters;
use diesel::{dsl::sql, prelude::*, sql_types::Bool};

use crate::{
    clock::Clock,
    store::{self, RunQueryDsl, Scope, Store},
};

const EVERY: Duration = Duration::from_secs(3600);
/// Seconds after its window closed: nodes' clocks differ by less.
const KEPT: i64 = 24 * 3600;

/// Forgets them, now and every hour. Never returns.
pub async fn forget(store: Store, clock: Clock) {
    loop {
        let until = clock.now().timestamp() - KEPT;
        let scope = Scope::service();
        let forgotten = store.write_tx(&scope, async move |db| {
            let closed = sql::<Bool>("window_start + window_seconds < ")
                .bind::<diesel::sql_types::BigInt, _>(until);
            Ok::<_, store::Error>(diesel::delete(counters::table.filter(closed)).execute(db).await?)
        });
        if let Err(error) = forgotten.await {
            tracing::warn!(%error, "cannot forget old counters");
        }
        tokio::time::sleep(EVERY).await;
    }
}
