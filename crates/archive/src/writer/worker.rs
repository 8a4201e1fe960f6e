//! The worker that archives.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use authority_core::{
    store::{self, RunQueryDsl, Scope, Store},
    worker::{Next, Worker},
};
use diesel::{QueryableByName, sql_types::Text};

use super::{Archiver, Parts, Step};
use crate::Error;

/// What is old changes once a month.
const EVERY: Duration = Duration::from_secs(3600);
/// After so long a tick ends,
const LONGEST: Duration = Duration::from_secs(3);
/// and the next one goes on soon.
const SOON: Duration = Duration::from_millis(100);

/// Tenants of which nothing is deleted although they have `decisions_days`.
const WAITING: &str = "
    SELECT id FROM tenants WHERE retention ->> 'decisions_days' IS NOT NULL AND legal_hold IS NULL ORDER BY id";

/// How often it is said that there is no archive.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The worker; several nodes may have one, and share the months.
pub fn worker(parts: Parts) -> Worker {
    let archiver = Arc::new(Archiver::new(parts));
    Worker::periodic("archive", EVERY, move || {
        let archiver = Arc::clone(&archiver);
        async move {
            let until = Instant::now() + LONGEST;
            while Instant::now() < until {
                match archiver.step().await {
                    Ok(Step::Idle) | Err(Error::Stopped) => return Ok(Next::Usual),
                    Ok(_) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(Next::After(SOON))
        }
    })
}

/// Warns of tenants with `decisions_days` while nothing is archived; `remedy` says what the operator can do.
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
                tracing::warn!(tenant = tenant.id, "`decisions_days` has no effect: {remedy}");
            }
            Ok::<_, store::Error>(())
        }
    })
}
