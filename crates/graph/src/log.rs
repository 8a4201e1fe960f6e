//! Reads the stored change log, `authority_changes`, in the order of commits.

use std::collections::{BTreeMap, BTreeSet};

use authority_ids::TenantId;
use authority_model::schema::authority_changes;
use chrono::{DateTime, Utc};
use diesel::prelude::*;

use authority_store::{Db, RunQueryDsl, row_id};

/// The maximum number of changes to read at once.
const MOST: i64 = 10_000;

/// The changed ids of each table.
pub(super) type Changed = BTreeMap<String, BTreeSet<String>>;

/// The changes of one tenant, and the tenant's new revision.
#[derive(Default)]
pub(super) struct Moved {
    pub(super) revision: i64,
    pub(super) changed: Changed,
}

/// The changes after a position in the log.
pub(super) struct NewChanges {
    pub(super) position: i64,
    pub(super) tenants: BTreeMap<TenantId, Moved>,
    /// Whether the log has more changes after these.
    pub(super) more: bool,
}

impl NewChanges {
    /// Returns the changed ids of each table, for all tenants.
    pub(super) fn tables(&self) -> Changed {
        let mut all = Changed::new();
        for (table, ids) in self.tenants.values().flat_map(|moved| &moved.changed) {
            all.entry(table.clone()).or_default().extend(ids.iter().cloned());
        }
        all
    }
}

/// Returns the number of the last change, or 0 if there is none, and the database's time.
pub(super) async fn last(db: &mut Db) -> QueryResult<(i64, DateTime<Utc>)> {
    let now = diesel::dsl::sql::<diesel::sql_types::Timestamptz>("clock_timestamp()");
    let last = diesel::dsl::max(authority_changes::seq);
    let (last, now): (Option<i64>, _) =
        authority_changes::table.select((last, now)).first(db).await?;
    Ok((last.unwrap_or_default(), now))
}

/// Reads the changes after a position.
pub(super) async fn new_changes(db: &mut Db, position: i64) -> QueryResult<NewChanges> {
    let log: Vec<(i64, String, i64, String, String)> = authority_changes::table
        .filter(authority_changes::seq.gt(position))
        .order(authority_changes::seq)
        .limit(MOST)
        .select((
            authority_changes::seq,
            authority_changes::tenant_id,
            authority_changes::tenant_revision,
            authority_changes::table_name,
            authority_changes::entity_id,
        ))
        .load(db)
        .await?;
    let mut new_changes = NewChanges {
        position,
        tenants: BTreeMap::new(),
        more: i64::try_from(log.len()) == Ok(MOST),
    };
    for (seq, tenant_id, revision, table, id) in log {
        new_changes.position = seq;
        let moved = new_changes.tenants.entry(row_id(&tenant_id)?).or_default();
        moved.revision = revision;
        moved.changed.entry(table).or_default().insert(id);
    }
    Ok(new_changes)
}
