//! Reads the heads of all logs regularly, to remember the checkpoints that other nodes sign.

use std::{sync::Arc, time::Duration};

use authority_model::schema::log_heads;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use parking_lot::Mutex;

use super::{
    Error,
    log::{LogHead, broken, continues},
    sealer::Sealer,
};
use authority_evidence::log::note::SignedCheckpoint;
use authority_process::worker::Worker;
use authority_store::{RunQueryDsl, Scope, row_id};

const EVERY: Duration = Duration::from_secs(1);
/// Each run starts this long before the last run: a head's `signed_at` is earlier than its commit.
const LATE: TimeDelta = TimeDelta::minutes(1);

/// Returns the worker that follows the heads.
pub(super) fn worker(sealer: Arc<Sealer>) -> Worker {
    let since = Arc::new(Mutex::new(DateTime::<Utc>::UNIX_EPOCH));
    Worker::periodic("log_heads", EVERY, move || {
        let (sealer, since) = (Arc::clone(&sealer), Arc::clone(&since));
        async move {
            let (started, from) = (sealer.clock.now(), *since.lock());
            follow(&sealer, from).await?;
            *since.lock() = started - LATE;
            Ok::<_, Error>(())
        }
    })
}

async fn follow(sealer: &Arc<Sealer>, since: DateTime<Utc>) -> Result<(), Error> {
    let scope = Scope::service();
    let this = Arc::clone(sealer);
    let read = sealer.store.read_tx(&scope, async move |db| {
        let heads: Vec<(String, LogHead)> = log_heads::table
            .filter(log_heads::signed_at.ge(since).and(log_heads::checkpoint.ne("")))
            .order((log_heads::tenant_id, log_heads::epoch))
            .select((log_heads::tenant_id, LogHead::as_select()))
            .load(db)
            .await?;
        for (tenant_id, head) in heads {
            let tenant_id = row_id(&tenant_id)?;
            let name = tenant_id.slug();
            let last = this.witness.last(name).map_err(|why| broken(&tenant_id, &why))?;
            if let Some(last) = last
                && !continues(db, &tenant_id, &head, &last).await?
            {
                // The remembered checkpoint is kept. When this node next seals for the tenant, it
                // starts a new epoch.
                tracing::error!(
                    tenant.id = %tenant_id,
                    "found a log that does not continue its last known checkpoint"
                );
                continue;
            }
            let note = SignedCheckpoint::parse(&head.checkpoint);
            let note = note.map_err(|why| broken(&tenant_id, &why))?;
            if this.keys.log_key(&note).is_none() {
                return Err(broken(&tenant_id, &"this service did not sign its head"));
            }
            let kept = this.witness.keep(name, &note.checkpoint, &head.checkpoint);
            kept.map_err(|why| broken(&tenant_id, &why))?;
        }
        Ok::<_, Error>(())
    });
    read.await
}
