//! Notifications: events that a tenant's people should see in the application.
//!
//! Triggers write a notification at the time of its event, for people with certain
//! roles. Each person has a separate read mark.

mod follow;
mod reader;
mod service;

use std::time::Duration;

use authority_process::worker::Worker;
use authority_store::{self as store, Db, RunQueryDsl, Scope, Store};

pub(crate) use service::NotificationHandlers;

/// How often the worker runs. An expiry is announced a week before it and again a day before it.
/// Each announcement can be up to an hour late.
const EVERY: Duration = Duration::from_secs(3600);

/// Deletes push subscriptions that have expired or were not renewed for 90 days, the time for which
/// notifications are kept. The person of an old subscription may have lost the role.
const EXPIRED: &str = "DELETE FROM push_subscriptions \
     WHERE expires_at < now() OR renewed_at < now() - interval '90 days'";

/// Deletes messages about approvals. A request waits for 30 days at most.
const OLD_MESSAGES: &str = "DELETE FROM messages WHERE created_at < now() - interval '90 days'";

diesel::define_sql_function! { fn notify_of_expiries() -> BigInt; }
diesel::define_sql_function! { fn drop_old_notifications() -> Integer; }

/// Announces keys and delegations that expire soon, and deletes old notifications.
pub(crate) fn worker(store: Store) -> Worker {
    Worker::periodic("notifications", EVERY, move || {
        let store = store.clone();
        async move {
            store
                .write_tx(&Scope::service(), async move |db: &mut Db| {
                    diesel::select(notify_of_expiries()).get_result::<i64>(db).await?;
                    diesel::select(drop_old_notifications()).get_result::<i32>(db).await?;
                    diesel::sql_query(EXPIRED).execute(db).await?;
                    diesel::sql_query(OLD_MESSAGES).execute(db).await?;
                    Ok::<_, store::Error>(())
                })
                .await
        }
    })
}
