//! Reads authority out of Postgres: all of it at start, what changed from then on.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64},
    },
    time::{Duration, Instant},
};

use authority_model::{
    proto::{delegation, registry},
    schema::{self, tenant_revisions},
};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::TryStreamExt;
use parking_lot::RwLock;
use tokio::sync::{Notify, watch};

use super::{
    Graph, Settings,
    api_key::{API_KEYS, KeyRow},
    clock_distance::ClockDistance,
    log::{self, Changed},
    rows::Authority,
    tenant::TenantGraph,
};
use crate::{
    clock::Clock,
    store::{Db, Error, Store},
};

/// A change to one tenant's graph.
type Put = Box<dyn FnOnce(&mut TenantGraph) + Send>;

/// Present rows, ready to be put into the graph.
#[derive(Default)]
pub(super) struct Rows {
    puts: Vec<(String, Put)>,
    keys: Vec<KeyRow>,
}

impl Rows {
    fn push<T: Authority>(&mut self, row: T) {
        let tenant = row.tenant_id().to_owned();
        self.puts.push((tenant, Box::new(move |graph| row.put(graph))));
    }

    pub(super) fn split(self) -> (HashMap<String, Vec<Put>>, Vec<KeyRow>) {
        let mut by_tenant: HashMap<String, Vec<Put>> = HashMap::new();
        for (tenant, put) in self.puts {
            by_tenant.entry(tenant).or_default().push(put);
        }
        (by_tenant, self.keys)
    }
}

macro_rules! tables {
    ($($table:ident $message:ty;)*) => {
        /// Everything, streamed, so that a million delegations are not in memory twice.
        async fn everything(db: &mut Db, graph: &Graph) -> QueryResult<()> {
            $(
                let mut rows = schema::$table::table
                    .select(<$message>::as_select())
                    .load_stream::<$message>(db)
                    .await?;
                while let Some(row) = rows.try_next().await? {
                    let handle = graph.handle(row.tenant_id());
                    row.put(&mut handle.write());
                }
                drop(rows);
            )*
            Ok(())
        }

        /// The present versions of the rows that changed; deleted rows are not among them.
        pub(super) async fn changed(db: &mut Db, changed: &Changed) -> QueryResult<Rows> {
            let mut found = Rows::default();
            for (table, ids) in changed {
                match table.as_str() {
                    $(
                        stringify!($table) => {
                            let rows = schema::$table::table
                                .filter(schema::$table::id.eq_any(ids))
                                .select(<$message>::as_select())
                                .load::<$message>(db)
                                .await?;
                            rows.into_iter().for_each(|row| found.push(row));
                        }
                    )*
                    API_KEYS => {
                        found.keys = KeyRow::some(db, ids).await?;
                    }
                    // Its members matter here, and they have rows of their own.
                    "teams" => {}
                    // Of a newer version of the service: its meaning for authority is unknown here,
                    // so this node goes stale and makes no more decisions.
                    other => {
                        let text = format!("the graph does not know the table `{other}`");
                        return Err(diesel::result::Error::QueryBuilderError(text.into()));
                    }
                }
            }
            Ok(found)
        }

        impl TenantGraph {
            /// Replaces the rows that changed.
            pub(super) fn replace(&mut self, changed: &Changed, puts: Vec<Put>) {
                for (table, ids) in changed {
                    match table.as_str() {
                        $(
                            stringify!($table) => {
                                ids.iter().for_each(|id| <$message>::remove(self, id));
                            }
                        )*
                        _ => {}
                    }
                }
                puts.into_iter().for_each(|put| put(self));
                if ["policies", "applies_to"].iter().any(|table| changed.contains_key(*table)) {
                    self.index_policies();
                }
            }
        }
    };
}

tables! {
    tenants registry::Tenant;
    principals registry::Principal;
    member_of registry::MemberOf;
    delegations delegation::Delegation;
    uses registry::Uses;
    acts_in registry::ActsIn;
    granted_access_to registry::GrantedAccessTo;
    purposes registry::Purpose;
    tools registry::Tool;
    models registry::Model;
    external_apps registry::ExternalApp;
    resources registry::Resource;
    workspaces registry::Workspace;
    projects registry::Project;
    policies registry::Policy;
    applies_to registry::AppliesTo;
    stop_signals registry::StopSignal;
    quarantines registry::Quarantine;
}

/// The longest that a read may take; after it the database is assumed not to answer.
const BUILDING: Duration = Duration::from_secs(600);

impl Graph {
    /// Builds the graph as it is now; [`Graph::workers`] keep it current.
    pub async fn load(store: Store, settings: Settings, clock: Clock) -> Result<Arc<Self>, Error> {
        let started = Instant::now();
        let graph = Arc::new(Self {
            store: store.clone(),
            settings,
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
        // Measured separately, on a warm connection; each round of the tail measures again.
        store.within(BUILDING, log::last(&mut db)).await?;
        let query = graph.clock.start_query();
        let (_, now) = store.within(BUILDING, log::last(&mut db)).await?;
        graph.clock.answered(&query, now);
        let mut reading = db.build_transaction().read_only().repeatable_read();
        // A million rows take longer than the limit of a statement; nothing else uses this
        // connection.
        let building = Arc::clone(&graph);
        let built = reading.run(async move |db| {
            diesel::sql_query("SET LOCAL statement_timeout = 0").execute(db).await?;
            build(db, &building).await
        });
        store.within(BUILDING, built).await?;
        graph.saw(started);
        let (tenants, elapsed) = (graph.tenants(), started.elapsed());
        tracing::info!(tenants, elapsed_ms = elapsed.as_millis(), "authority graph is loaded");
        Ok(graph)
    }
}

async fn build(db: &mut Db, graph: &Graph) -> QueryResult<()> {
    let (last, _) = log::last(db).await?;
    everything(db, graph).await?;
    graph.put_keys([], KeyRow::all(db).await?);
    let revisions: Vec<(String, i64)> = tenant_revisions::table
        .select((tenant_revisions::tenant_id, tenant_revisions::revision))
        .load(db)
        .await?;
    for (tenant, revision) in revisions {
        graph.handle(&tenant).write().revision = revision;
    }
    for (tenant_id, handle) in &*graph.tenants.read() {
        let mut handle = handle.write();
        handle.index_policies();
        for fault in handle.faulty_policies() {
            tracing::warn!(tenant = handle.profile.slug, "a stored policy is at fault: {fault}");
        }
        graph.move_org(tenant_id, None, handle.organisation());
    }
    graph.position.store(last, std::sync::atomic::Ordering::Release);
    Ok(())
}
