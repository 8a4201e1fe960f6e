//! The background worker that archives months and removes their rows.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use authority_process::worker::{Next, Worker};
use authority_store::{self as store, RunQueryDsl, Scope, Store};
use diesel::{QueryableByName, sql_types::Text};

use super::{Archiver, Parts, StepResult};
use crate::Error;

/// How often the worker runs. Once a month, another month becomes old enough to be archived.
const EVERY: Duration = Duration::from_secs(3600);
/// The longest duration of a run of the worker (a tick).
const LONGEST: Duration = Duration::from_secs(3);
/// The delay before the next tick if a tick ended with steps left.
const SOON: Duration = Duration::from_millis(100);

/// The tenants with `decisions_days` set: without an archive, their decisions are not deleted.
const WAITING: &str = "
    SELECT id FROM tenants WHERE retention ->> 'decisions_days' IS NOT NULL AND legal_hold IS NULL ORDER BY id";

/// The interval of the warning about the missing archive.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Returns the worker. If several nodes run it, they divide the months by leases.
pub fn worker(parts: Parts) -> Worker {
    let archiver = Arc::new(Archiver::new(parts));
    Worker::periodic("archive", EVERY, move || {
        let archiver = Arc::clone(&archiver);
        async move {
            let until = Instant::now() + LONGEST;
            while Instant::now() < until {
                match archiver.step().await {
                    Ok(StepResult::Idle) | Err(Error::Stopped) => return Ok(Next::Usual),
                    Ok(_) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(Next::After(SOON))
        }
    })
}

/// Warns about tenants with `decisions_days` while no archive is configured.
///
/// `remedy` describes how the operator can fix it.
pub fn worker_without_archive(store: Store, remedy: &'static str) -> Worker {
    #[derive(QueryableByName)]
    struct Tenant {
        #[diesel(sql_type = Text)]
        id: String,
    }
    Worker::periodic("archive", DAY, move || {
        let store = store.clone();
        async move {
            let read = store.read_tx(&Scope::service(), async |db| {
                Ok::<_, store::Error>(diesel::sql_query(WAITING).load::<Tenant>(db).await?)
            });
            for tenant in read.await? {
                tracing::warn!(
                    tenant.id = tenant.id,
                    remedy,
                    "found decisions_days without effect"
                );
            }
            Ok::<_, store::Error>(())
        }
    })
}
