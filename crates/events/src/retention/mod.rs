//! Deletes events, deliveries and attempts that are older than their tenant's retention.
//!
//! 1. `log.rs` deletes events, oldest first, and records the position of the oldest event that is
//!    left.
//! 2. `deliveries.rs` cancels deliveries that can no longer be sent, and counts their events as
//!    lost. It deletes old deliveries with their attempts.
//! 3. Functions of the database drop partitions without rows.
//!
//! Each step is a separate transaction of at most a few thousand rows. The steps that delete rows
//! take an advisory lock, which lets only one node delete at a time. The data of a tenant under
//! legal hold is not deleted.

mod deliveries;
mod log;

use std::time::{Duration, Instant};

use authority_ids::EndpointRef;
use authority_process::worker::{Next, Worker};
use authority_store::{self as store, Db, RunQueryDsl, Scope, Store, locks};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{BigInt, Bool, Nullable, Text},
};

use crate::delivery::lost;

/// How often the worker runs. The age limit advances by whole days.
const EVERY: Duration = Duration::from_secs(3600);
/// The longest duration of a run. It is short, because a stopping service waits for the run to end.
const LONGEST: Duration = Duration::from_secs(3);
/// The delay before the next run if there is more to do or another node is deleting.
const SOON: Duration = Duration::from_secs(1);

diesel::define_sql_function! { fn drop_empty_event_partitions() -> Integer; }

/// Returns the worker that deletes old events and deliveries.
pub fn worker(store: Store) -> Worker {
    Worker::periodic("event_retention", EVERY, move || {
        let run = Run { store: store.clone(), until: Instant::now() + LONGEST };
        async move {
            let done = run.all().await?;
            Ok::<_, store::Error>(if done { Next::Usual } else { Next::After(SOON) })
        }
    })
}

/// The type of rows that one transaction deletes.
#[derive(Clone, Copy)]
enum Kind {
    /// The events of a tenant.
    Events,
    /// The deliveries of an endpoint.
    Deliveries,
}

/// One run of the worker.
struct Run {
    store: Store,
    until: Instant,
}

impl Run {
    /// Deletes old rows. Returns whether all of them are deleted.
    async fn all(&self) -> Result<bool, store::Error> {
        for tenant_id in self.ids(log::TENANTS, None).await? {
            let done = self.delete(Kind::Events, &tenant_id).await?;
            for endpoint_id in self.ids(deliveries::OF_TENANT, Some(&tenant_id)).await? {
                self.cancel(&endpoint_id.into()).await?;
            }
            if !done {
                return Ok(false);
            }
        }
        for endpoint_id in self.ids(deliveries::ENDPOINTS, None).await? {
            let endpoint_id = EndpointRef::from(endpoint_id);
            self.cancel(&endpoint_id).await?;
            if !self.delete(Kind::Deliveries, &endpoint_id).await? {
                return Ok(false);
            }
        }
        self.drop_partitions().await?;
        Ok(true)
    }

    async fn ids(
        &self,
        query: &'static str,
        tenant_id: Option<&str>,
    ) -> Result<Vec<String>, store::Error> {
        let tenant_id = tenant_id.map(str::to_owned);
        let found = self.store.read_tx(&Scope::service(), async move |db| {
            let query = diesel::sql_query(query).bind::<Nullable<Text>, _>(tenant_id);
            let found: Vec<Id> = query.load(db).await?;
            Ok::<_, store::Error>(found)
        });
        Ok(found.await?.into_iter().map(|row| row.id).collect())
    }

    /// Deletes in one transaction after another. Returns whether all old rows are deleted.
    async fn delete(&self, kind: Kind, id: &str) -> Result<bool, store::Error> {
        loop {
            let id = id.to_owned();
            let deleted = self.store.write_tx(&Scope::service(), async move |db| {
                if !lock(db).await? {
                    return Ok(None);
                }
                let has_more = match kind {
                    Kind::Events => log::delete(db, &id).await?,
                    Kind::Deliveries => deliveries::delete(db, &id).await?,
                };
                Ok::<_, store::Error>(Some(has_more))
            });
            match deleted.await? {
                Some(false) => return Ok(true),
                Some(true) if Instant::now() < self.until => {}
                _ => return Ok(false),
            }
        }
    }

    /// Cancels the endpoint's open deliveries of deleted events.
    async fn cancel(&self, endpoint_id: &EndpointRef) -> Result<(), store::Error> {
        loop {
            let id = endpoint_id.clone();
            let cancelled = self.store.write_tx(&Scope::service(), async move |db| {
                Ok::<_, store::Error>(deliveries::cancel(db, &id).await?)
            });
            match cancelled.await? {
                Some(events) => lost::report(endpoint_id, events),
                None => return Ok(()),
            }
        }
    }

    async fn drop_partitions(&self) -> Result<(), store::Error> {
        let dropped = self.store.write_tx(&Scope::service(), async move |db| {
            let dropped: i32 = diesel::select(drop_empty_event_partitions()).get_result(db).await?;
            Ok::<_, store::Error>(dropped)
        });
        let dropped = dropped.await?;
        if dropped > 0 {
            tracing::info!(
                partitions = dropped,
                "dropped empty partitions of events and deliveries"
            );
        }
        Ok(())
    }
}

/// Takes the lock for deletions. Returns whether this transaction has it.
async fn lock(db: &mut Db) -> QueryResult<bool> {
    let lock = diesel::sql_query("SELECT pg_try_advisory_xact_lock($1) AS locked");
    let locked: Locked = lock.bind::<BigInt, _>(locks::EVENT_RETENTION).get_result(db).await?;
    Ok(locked.locked)
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = Text)]
    id: String,
}

#[derive(QueryableByName)]
struct Locked {
    #[diesel(sql_type = Bool)]
    locked: bool,
}
