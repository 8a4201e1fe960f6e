//! Announces what has expired: an expiry changes no row that a trigger could see.

use std::time::Duration;

use authority_core::{
    store::{self, RunQueryDsl, Scope, Store},
    worker::{Next, Worker},
};
use diesel::sql_types::Integer;

/// So that an expiry is an event within five seconds.
const EVERY: Duration = Duration::from_secs(4);
/// How many are announced in one transaction.
const MOST: i32 = 2_000;

diesel::define_sql_function! { fn announce_expiries(most: Integer) -> Integer; }

/// The worker.
pub(crate) fn worker(store: Store) -> Worker {
    Worker::periodic("expiry_events", EVERY, move || announce(store.clone()))
}

async fn announce(store: Store) -> Result<Next, store::Error> {
    let scope = Scope::service();
    let announced: i32 = store
        .write_tx(&scope, async |db| {
            Ok::<_, store::Error>(diesel::select(announce_expiries(MOST)).get_result(db).await?)
        })
        .await?;
    Ok(if announced == MOST { Next::After(Duration::ZERO) } else { Next::Usual })
}
