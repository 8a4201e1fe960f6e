//! Creates the events of expiries. An expiry changes no row. Therefore no trigger
//! can create its event.

use std::time::Duration;

use authority_process::worker::{Next, Worker};
use authority_store::{self as store, RunQueryDsl, Scope, Store};
use diesel::sql_types::Integer;

/// How often expiries are announced. The event of an expiry is created within five seconds.
const EVERY: Duration = Duration::from_secs(4);
/// The most expiries that are announced in one transaction.
const MOST: i32 = 2_000;

diesel::define_sql_function! { fn announce_expiries(most: Integer) -> Integer; }

/// Returns the worker that announces expiries.
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
