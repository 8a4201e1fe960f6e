//! Reads authority from Postgres: all of it at start, later only the changes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64},
    },
    time::{Duration, Instant},
};

use authority_model::schema::tenant_revisions;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use parking_lot::RwLock;
use tokio::sync::{Notify, watch};

use super::{
    clock_distance::ClockDistance, graph::Graph, key_row::KeyRow, log, settings::Settings, tables,
};
use authority_crypto::ErasedNames;
use authority_process::clock::Clock;
use authority_store::{Db, Error, Store};

/// The maximum duration of a read. If a read takes longer, the database is assumed to be
/// unavailable.
const BUILDING: Duration = Duration::from_secs(600);

impl Graph {
    /// Builds the graph in its current state. [`Graph::workers`] keep it current.
    pub async fn load(
        store: Store,
        settings: Settings,
        clock: Clock,
        erased: ErasedNames,
    ) -> Result<Arc<Self>, Error> {
        let started = Instant::now();
        let graph = Arc::new(Self {
            store: store.clone(),
            settings,
            erased,
            clock: ClockDistance::new(clock),
            tenants: RwLock::default(),
            keys: RwLock::default(),
            orgs: RwLock::default(),
            position: AtomicI64::new(0),
            started,
            seen: AtomicU64::new(0),
            wake: Notify::new(),
            rounds_started: AtomicU64::new(0),
            round_ended: watch::Sender::new(0),
            is_torn: AtomicBool::new(false),
        });
        let mut db = store.system().await?;
        // Compares the clocks by a second query, because the first one may be slow on a new
        // connection. Each round of the tail compares them again.
        store.within(BUILDING, log::last(&mut db)).await?;
        let query = graph.clock.start_query();
        let (_, now) = store.within(BUILDING, log::last(&mut db)).await?;
        graph.clock.answered(&query, now);
        let mut reading = db.build_transaction().read_only().repeatable_read();
        // Reading a million rows takes longer than the statement limit. This connection runs only
        // this query.
        let building = Arc::clone(&graph);
        let built = reading.run(async move |db| {
            diesel::sql_query("SET LOCAL statement_timeout = 0").execute(db).await?;
            build(db, &building).await
        });
        store.within(BUILDING, built).await?;
        graph.saw(started);
        let tenants = graph.tenants();
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(tenants, duration_ms, "loaded the authority graph");
        Ok(graph)
    }
}

async fn build(db: &mut Db, graph: &Graph) -> QueryResult<()> {
    let (last, _) = log::last(db).await?;
    tables::load(db, graph).await?;
    graph.put_keys([], KeyRow::all(db).await?);
    let revisions: Vec<(String, i64)> = tenant_revisions::table
        .select((tenant_revisions::tenant_id, tenant_revisions::revision))
        .load(db)
        .await?;
    for (tenant, revision) in revisions {
        let handle = graph.handle_of_row(&tenant)?;
        let mut tenant = handle.write();
        (tenant.revision, tenant.ruled_at) = (revision, revision);
    }
    for (tenant_id, handle) in &*graph.tenants.read() {
        let mut handle = handle.write();
        handle.index_policies();
        for fault in handle.faulty_policies() {
            tracing::warn!(tenant.id = %tenant_id, error = fault, "found a faulty stored policy");
        }
        for fault in handle.faulty_places() {
            tracing::warn!(tenant.id = %tenant_id, error = fault, "found an invalid stored place");
        }
        graph.move_org(tenant_id, None, handle.organisation());
    }
    graph.position.store(last, std::sync::atomic::Ordering::Release);
    Ok(())
}
