//! Expires requests that waited too long, or were approved and never used.

use std::time::Duration;

use authority_model::schema::approvals;

use super::super::prelude::*;
use authority_core::{
    clock::Clock,
    store::{self, Scope, Store},
};

const EVERY: Duration = Duration::from_secs(10);
/// How many at a time.
const MOST: i64 = 10_000;

/// Expires them, now and every ten seconds. Never returns. Commands check a request's expiry themselves:
/// this is for readers of its state.
pub async fn expire(store: Store, clock: Clock) {
    loop {
        let now = clock.now();
        let scope = Scope::service();
        let expired = store.write_tx(&scope, async move |db| {
            // A request that is locked by a decision is left for the next run.
            let due: Vec<String> = approvals::table
                .filter(approvals::state.eq_any(["pending", "approved"]))
                .filter(approvals::expires_at.le(now))
                .order(approvals::id)
                .limit(MOST)
                .for_update()
                .skip_locked()
                .select(approvals::id)
                .load(db)
                .await?;
            let due = approvals::table.filter(approvals::id.eq_any(due));
            let ended =
                (approvals::state.eq("expired"), approvals::updated_at.eq(clock_timestamp()));
            Ok::<_, store::Error>(diesel::update(due).set(ended).execute(db).await?)
        });
        if let Err(error) = expired.await {
            tracing::warn!(%error, "cannot end approvals that expired");
        }
        tokio::time::sleep(EVERY).await;
    }
}
