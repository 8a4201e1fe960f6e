//! The tables of authority, and the conversion of their rows for the graph.

use std::collections::{BTreeSet, HashMap};

use authority_ids::TenantId;
use authority_model::{
    proto::{delegation, registry},
    schema,
};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::{Stream, TryStreamExt, future::BoxFuture};

use super::{
    authority::Authority,
    event_demand::EventDemand,
    graph::Graph,
    key_row::{API_KEYS, KeyRow},
    log::Changed,
    reality::{AnchorRow, DriftRow, HeadRow, OverrideRow},
    tenant::TenantGraph,
};
use authority_store::{Db, row_id};

/// A change to one tenant's graph.
type Put = Box<dyn FnOnce(&mut TenantGraph) + Send>;
/// A row's tenant, and the change that adds the row to the tenant's graph.
type TenantPut = (TenantId, Put);
/// A query on a connection.
type Reading<'a, T> = BoxFuture<'a, QueryResult<T>>;

/// A table of authority.
struct Table {
    name: &'static str,
    /// Adds every row to the graph. Rows are streamed, to avoid holding a million delegations in
    /// memory twice.
    load: for<'a> fn(&'a mut Db, &'a Graph) -> Reading<'a, ()>,
    /// Reads the current versions of the rows with these ids.
    read: for<'a> fn(&'a mut Db, &'a BTreeSet<String>) -> Reading<'a, Vec<TenantPut>>,
    remove: fn(&mut TenantGraph, &str),
}

/// Builds the [`Table`] of rows that are read as this record.
macro_rules! table {
    ($table:ident, $record:ty) => {
        Table {
            name: stringify!($table),
            load: |db, graph| {
                Box::pin(async move {
                    let query = schema::$table::table.select(<$record>::as_select());
                    put_all(query.load_stream::<$record>(db).await?, graph).await
                })
            },
            read: |db, ids| {
                Box::pin(async move {
                    let query = schema::$table::table
                        .filter(schema::$table::id.eq_any(ids))
                        .select(<$record>::as_select());
                    let rows: Vec<$record> = query.load(db).await?;
                    rows.into_iter().map(put).collect()
                })
            },
            remove: <$record as Authority>::remove,
        }
    };
}

const TABLES: [Table; 23] = [
    table!(tenants, registry::Tenant),
    table!(principals, registry::Principal),
    table!(member_of, registry::MemberOf),
    table!(delegations, delegation::Delegation),
    table!(uses, registry::Uses),
    table!(acts_in, registry::ActsIn),
    table!(granted_access_to, registry::GrantedAccessTo),
    table!(purposes, registry::Purpose),
    table!(tools, registry::Tool),
    table!(models, registry::Model),
    table!(external_apps, registry::ExternalApp),
    table!(resources, registry::Resource),
    table!(workspaces, registry::Workspace),
    table!(projects, registry::Project),
    table!(policies, registry::Policy),
    table!(applies_to, registry::AppliesTo),
    table!(stop_signals, registry::StopSignal),
    table!(quarantines, registry::Quarantine),
    table!(event_demands, EventDemand),
    table!(reality_anchors, AnchorRow),
    table!(reality_heads, HeadRow),
    table!(reality_overrides, OverrideRow),
    table!(stable_drift_events, DriftRow),
];

async fn put_all<T: Authority>(
    mut rows: impl Stream<Item = QueryResult<T>> + Unpin,
    graph: &Graph,
) -> QueryResult<()> {
    while let Some(row) = rows.try_next().await? {
        let handle = graph.handle_of_row(row.tenant_id())?;
        row.put(&mut handle.write());
    }
    Ok(())
}

fn put<T: Authority>(row: T) -> QueryResult<TenantPut> {
    let tenant_id = row_id(row.tenant_id())?;
    Ok((tenant_id, Box::new(move |graph: &mut TenantGraph| row.put(graph))))
}

fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

/// Whether permissions must be judged again after a change of this table.
///
/// False for `event_demands`, which only determines which decisions become events, and for reality:
/// its conditions are checked after every change, without judging the whole permission.
pub(super) fn rules(table: &str) -> bool {
    let others = [
        "event_demands",
        "reality_anchors",
        "reality_heads",
        "reality_overrides",
        "stable_drift_events",
    ];
    !others.contains(&table)
}

/// Loads all tables except the API keys.
pub(super) async fn load(db: &mut Db, graph: &Graph) -> QueryResult<()> {
    for table in &TABLES {
        (table.load)(db, graph).await?;
    }
    Ok(())
}

/// Current rows, ready to be added to the graph.
#[derive(Default)]
pub(super) struct Rows {
    puts: Vec<TenantPut>,
    keys: Vec<KeyRow>,
}

impl Rows {
    pub(super) fn split(self) -> (HashMap<TenantId, Vec<Put>>, Vec<KeyRow>) {
        let mut by_tenant: HashMap<TenantId, Vec<Put>> = HashMap::new();
        for (tenant, put) in self.puts {
            by_tenant.entry(tenant).or_default().push(put);
        }
        (by_tenant, self.keys)
    }
}

/// Reads the current versions of the changed rows. Deleted rows are not included.
pub(super) async fn changed(db: &mut Db, changed: &Changed) -> QueryResult<Rows> {
    let mut found = Rows::default();
    for (name, ids) in changed {
        match (table(name), name.as_str()) {
            (Some(table), _) => found.puts.extend((table.read)(db, ids).await?),
            (None, API_KEYS) => found.keys = KeyRow::some(db, ids).await?,
            // Only the members of a team matter here. They have rows of their own.
            (None, "teams") => {}
            // The table belongs to a newer version of the service, and its meaning for authority is
            // unknown. This node goes stale and makes no more decisions.
            (None, other) => {
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
        for (name, ids) in changed {
            if let Some(table) = table(name) {
                ids.iter().for_each(|id| (table.remove)(self, id));
            }
        }
        puts.into_iter().for_each(|put| put(self));
        if ["policies", "applies_to"].iter().any(|table| changed.contains_key(*table)) {
            self.index_policies();
        }
        if changed.contains_key("tools") {
            self.schemas.keep(self.tools.iter().map(|tool| &**tool));
        }
    }
}
