//! Deletes idempotency keys after 24 hours, and erases responses with secrets after 10 minutes.

use std::time::Duration;

use authority_model::schema::idempotency_keys;
use authority_process::{clock::Clock, worker::Worker};
use authority_store::{Error, RunQueryDsl, Scope, Store};
use chrono::{DateTime, Utc};
use diesel::prelude::*;

use super::claim::{ANSWERS_KEPT, SECRETS_KEPT};

const EVERY: Duration = Duration::from_secs(60);

/// Deletes every tenant's expired keys, and erases expired secrets.
///
/// # Errors
/// The database is unavailable; the next sweep tries again.
pub async fn sweep(store: &Store, now: DateTime<Utc>) -> Result<(), Error> {
    let scope = Scope::service();
    let swept = store.write_tx(&scope, async move |db| {
        let (day, minutes) = (now - ANSWERS_KEPT, now - SECRETS_KEPT);
        let old = idempotency_keys::table.filter(idempotency_keys::created_at.le(day));
        diesel::delete(old).execute(db).await?;
        let secret = idempotency_keys::sealed
            .and(idempotency_keys::answer.is_not_null())
            .and(idempotency_keys::created_at.le(minutes));
        diesel::update(idempotency_keys::table.filter(secret))
            .set(idempotency_keys::answer.eq(None::<Vec<u8>>))
            .execute(db)
            .await?;
        Ok::<_, Error>(())
    });
    swept.await
}

/// Sweeps every minute.
pub fn sweeper(store: Store, clock: Clock) -> Worker {
    Worker::periodic("idempotency_keys", EVERY, move || {
        let (store, now) = (store.clone(), clock.now());
        async move { sweep(&store, now).await }
    })
}
