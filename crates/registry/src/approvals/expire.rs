//! Expires requests that waited too long, or were approved and not used. Removes the codes by which
//! older requests were compared.

use std::time::Duration;

use authority_model::{
    schema::{approval_facts, approvals},
    state::ApprovalState,
    wire::Time,
};
use chrono::{DateTime, TimeDelta, Utc};

use crate::flow::prelude::*;
use authority_process::{clock::Clock, worker::Worker};
use authority_store::{self as store, Scope, Store};

const EVERY: Duration = Duration::from_secs(10);
/// How many requests one transaction expires.
const MOST: i64 = 10_000;

/// How long requests are compared with later ones, which can wait for 30 days.
const COMPARED: TimeDelta = TimeDelta::days(90 + 30);

/// Expires requests every ten seconds. Commands check a request's expiry themselves. This worker
/// updates the stored state for readers.
pub fn expire(store: Store, clock: Clock) -> Worker {
    Worker::periodic("approval_expiry", EVERY, move || expire_due(store.clone(), clock.now()))
}

async fn expire_due(store: Store, now: DateTime<Utc>) -> Result<(), store::Error> {
    let scope = Scope::service();
    let expired = store.write_tx(&scope, async move |db| {
        // A request that a decision has locked is left for the next run.
        let due: Vec<String> = approvals::table
            .filter(approvals::state.eq_any([ApprovalState::Pending, ApprovalState::Approved]))
            .filter(approvals::expires_at.le(now))
            .order(approvals::id)
            .limit(MOST)
            .for_update()
            .skip_locked()
            .select(approvals::id)
            .load(db)
            .await?;
        let due = approvals::table.filter(approvals::id.eq_any(due));
        let ended = (
            approvals::state.eq(ApprovalState::Expired),
            approvals::updated_at.eq(clock_timestamp()),
        );
        diesel::update(due).set(ended).execute(db).await?;
        let old = approval_facts::created_at.lt(Time::from(now - COMPARED));
        Ok::<_, store::Error>(diesel::delete(approval_facts::table.filter(old)).execute(db).await?)
    });
    expired.await.map(drop)
}
