//! Deletes the data of anonymous callers, which is kept for a day.

use std::time::Duration;

use authority_model::schema::{address_keys, anonymous_calls, lead_repeats};
use authority_process::{clock::Clock, worker::Worker};
use authority_store::{Error, RunQueryDsl, Scope, Store};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;

const EVERY: Duration = Duration::from_secs(600);
pub(crate) const KEPT: TimeDelta = TimeDelta::hours(24);

pub(crate) fn worker(store: Store, clock: Clock) -> Worker {
    Worker::periodic("anonymous_calls", EVERY, move || {
        let (store, now) = (store.clone(), clock.now());
        async move { sweep(&store, now).await }
    })
}

async fn sweep(store: &Store, now: DateTime<Utc>) -> Result<(), Error> {
    let (today, before) = (now.date_naive(), now - KEPT);
    let swept = store.write_tx(&Scope::service(), async move |db| {
        diesel::delete(address_keys::table.filter(address_keys::day.lt(today))).execute(db).await?;
        let calls = anonymous_calls::table.filter(anonymous_calls::since.lt(before));
        diesel::delete(calls).execute(db).await?;
        let repeats = lead_repeats::table.filter(lead_repeats::at.lt(before));
        diesel::delete(repeats).execute(db).await?;
        Ok::<_, Error>(())
    });
    swept.await
}
