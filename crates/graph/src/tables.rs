//! The tables of authority, and the conversion of their rows for the graph.

use std::{
    collections::{BTreeSet, HashMap},
    error::Error as StdError,
    iter,
};

use authority_ids::TenantId;
use authority_model::{
    proto::{delegation, registry},
    schema::{self, tenants},
    wire::Time,
};
use diesel::{
    prelude::*,
    result::Error,
    sql_types::{Array, Nullable, Text},
};
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
    read: for<'a> fn(&'a mut Db, &'a BTreeSet<String>) -> Reading<'a, Found>,
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
                        .order(schema::$table::id)
                        .select((schema::$table::id, <$record>::as_select()));
                    find(query.load_stream::<(String, $record)>(db).await?).await
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
        let loaded = (table.load)(db, graph).await;
        match loaded {
            Err(Error::DeserializationError(_)) => load_in_parts(table, db, graph).await?,
            loaded => loaded?,
        }
    }
    Ok(())
}

/// Loads a table with unreadable rows.
async fn load_in_parts(table: &'static Table, db: &mut Db, graph: &Graph) -> QueryResult<()> {
    /// The number of rows to read at once.
    const PART: usize = 10_000;
    let owners = owners(table, db, None).await?;
    for part in owners.chunks(PART) {
        let ids: BTreeSet<String> = part.iter().map(|owner| owner.id.clone()).collect();
        let puts = read(table, db, &ids).await?;
        // The first attempt may have put some of these rows.
        for owner in part {
            let handle = graph.handle_of_row(&owner.tenant_id)?;
            (table.remove)(&mut handle.write(), &owner.id);
        }
        for (tenant_id, put) in puts {
            put(&mut graph.handle(&tenant_id).write());
        }
    }
    Ok(())
}

/// Rows of a table.
#[derive(Default)]
struct Found {
    puts: Vec<TenantPut>,
    /// The ids of the readable rows.
    ids: BTreeSet<String>,
    /// The reasons why the other rows cannot be read, in the order of their ids.
    reasons: Vec<String>,
}

/// Collects rows. An unreadable row does not end the stream.
async fn find<T: Authority>(
    mut rows: impl Stream<Item = QueryResult<(String, T)>> + Unpin,
) -> QueryResult<Found> {
    let mut found = Found::default();
    loop {
        match rows.try_next().await {
            Ok(Some((id, row))) => {
                found.ids.insert(id);
                found.puts.push(put(row)?);
            }
            Ok(None) => return Ok(found),
            // The first error has the column, and its source the member.
            Err(Error::DeserializationError(error)) => {
                let column: &(dyn StdError + 'static) = &*error;
                let errors = iter::successors(Some(column), |&error| error.source());
                let errors: Vec<String> = errors.map(ToString::to_string).collect();
                found.reasons.push(errors.join(": "));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns the changes that put the current versions of rows. For an unreadable row, the change
/// denies its tenant's requests: the row may forbid any action.
///
/// A later release may have written a member that this release does not know, for example before a
/// rollback. Such a row must not stop the decisions of all tenants.
async fn read(
    table: &'static Table,
    db: &mut Db,
    ids: &BTreeSet<String>,
) -> QueryResult<Vec<TenantPut>> {
    let Found { mut puts, ids: readable, reasons } = (table.read)(db, ids).await?;
    if reasons.is_empty() {
        return Ok(puts);
    }
    let others: Vec<String> = ids.difference(&readable).cloned().collect();
    if table.name == "tenants" {
        puts.extend(inactive_tenants(db, &others).await?);
    }
    let mut reasons = reasons.into_iter();
    // A deleted row has no owner.
    for RowOwner { id, tenant_id } in owners(table, db, Some(others)).await? {
        let tenant_id: TenantId = row_id(&tenant_id)?;
        let reason = reasons.next();
        tracing::error!(
            error = reason,
            tenant.id = %tenant_id,
            db.table = table.name,
            record.id = id,
            remedy = "start the release that wrote the record, or remove the member",
            "failed to read a record; denying the tenant's requests"
        );
        let deny = move |graph: &mut TenantGraph| graph.deny_for(table.name, id);
        puts.push((tenant_id, Box::new(deny)));
    }
    Ok(puts)
}

/// Returns the changes that put unreadable tenants, as inactive tenants.
///
/// Their people are then refused. Without the tenant's organisation, they could match another
/// tenant.
async fn inactive_tenants(db: &mut Db, ids: &[String]) -> QueryResult<Vec<TenantPut>> {
    let rows: Vec<(String, String, Option<String>, Option<Time>)> = tenants::table
        .filter(tenants::id.eq_any(ids))
        .select((tenants::id, tenants::slug, tenants::idp_org_id, tenants::deleted_at))
        .load(db)
        .await?;
    let inactive = |(id, slug, idp_org_id, deleted_at)| {
        let slug = Some(slug);
        put(registry::Tenant { id, slug, idp_org_id, deleted_at, ..registry::Tenant::default() })
    };
    rows.into_iter().map(inactive).collect()
}

#[derive(QueryableByName)]
struct RowOwner {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    tenant_id: String,
}

/// Returns the tenants of the rows with these ids, or of all rows, in the order of ids.
async fn owners(
    table: &Table,
    db: &mut Db,
    ids: Option<Vec<String>>,
) -> QueryResult<Vec<RowOwner>> {
    let sql = format!(
        "SELECT id::text AS id, tenant_id::text AS tenant_id FROM {} \
         WHERE $1 IS NULL OR id = ANY ($1) ORDER BY 1",
        table.name
    );
    diesel::sql_query(sql).bind::<Nullable<Array<Text>>, _>(ids).load(db).await
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
            (Some(table), _) => found.puts.extend(read(table, db, ids).await?),
            (None, API_KEYS) => found.keys = KeyRow::some(db, ids).await?,
            // Only the members of a team matter here. They have rows of their own.
            (None, "teams") => {}
            // The table belongs to a newer version of the service, and its meaning for authority is
            // unknown. This node goes stale and makes no more decisions.
            (None, other) => {
                let text = format!("the graph does not know the table `{other}`");
                return Err(Error::QueryBuilderError(text.into()));
            }
        }
    }
    Ok(found)
}

impl TenantGraph {
    /// Replaces the rows that changed.
    pub(super) fn replace(&mut self, changed: &Changed, puts: Vec<Put>) {
        let mut was_unreadable = false;
        for (name, ids) in changed {
            if let Some(table) = table(name) {
                for id in ids {
                    (table.remove)(self, id);
                    was_unreadable |= self.allow_for(table.name, id);
                }
            }
        }
        puts.into_iter().for_each(|put| put(self));
        if was_unreadable {
            self.resolve_quarantines();
        }
        if ["policies", "applies_to"].iter().any(|table| changed.contains_key(*table)) {
            self.index_policies();
        }
        if changed.contains_key("tools") {
            self.schemas.keep(self.tools.iter().map(|tool| &**tool));
        }
    }
}
