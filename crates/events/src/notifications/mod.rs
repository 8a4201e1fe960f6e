//! Notifications: what a tenant's people should know of, in the application.
//!
//! Triggers write them where something happens (migration 32), for the people with certain roles. Whether one
//! was read is each person's own.

mod follow;
mod reader;
mod service;

use std::time::Duration;

use authority_core::{
    store::{self, Db, RunQueryDsl, Scope, Store},
    worker::Worker,
};

pub(crate) use service::NotificationHandlers;

/// An expiry is told within an hour of the week or the day before it.
const EVERY: Duration = Duration::from_secs(3600);

/// Push subscriptions that the push service ended, and those whose person has not come for as long as
/// notifications are kept: nobody knows whether they still have their role.
const EXPIRED: &str = "DELETE FROM push_subscriptions \
     WHERE expires_at < now() OR renewed_at < now() - interval '90 days'";

diesel::define_sql_function! { fn notify_of_expiries() -> BigInt; }
diesel::define_sql_function! { fn drop_old_notifications() -> Integer; }

/// Tells of keys and delegations that expire soon, and deletes what is too old.
pub(crate) fn worker(store: Store) -> Worker {
    Worker::periodic("notifications", EVERY, move || {
        let store = store.clone();
        async move {
            store
                .write_tx(&Scope::service(), async move |db: &mut Db| {
                    diesel::select(notify_of_expiries()).get_result::<i64>(db).await?;
                    diesel::select(drop_old_notifications()).get_result::<i32>(db).await?;
                    diesel::sql_query(EXPIRED).execute(db).await?;
                    Ok::<_, store::Error>(())
                })
                .await
        }
    })
}
