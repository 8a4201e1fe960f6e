//! The change log as it is stored: `authority_changes`, in the order of commits.

use std::collections::{BTreeMap, BTreeSet};

use authority_model::schema::authority_changes;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

use crate::store::Db;

/// Most changes that are taken in at once.
const MOST: i64 = 10_000;

/// A table and the ids that changed in it.
pub(super) type Changed = BTreeMap<String, BTreeSet<String>>;

/// What the log says happened since a position.
pub(super) struct News {
    pub(super) position: i64,
    /// The last revision of each tenant.
    pub(super) revisions: BTreeMap<String, i64>,
    pub(super) changed: Changed,
    /// The log goes on behind this.
    pub(super) more: bool,
}

/// The number of the last change; 0 when there is none.
pub(super) async fn last(db: &mut Db) -> QueryResult<i64> {
    let last: Option<i64> = authority_changes::table
        .select(diesel::dsl::max(authority_changes::seq))
        .first(db)
        .await?;
    Ok(last.unwrap_or_default())
}

/// What happened since a position.
pub(super) async fn news(db: &mut Db, position: i64) -> QueryResult<News> {
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
    let mut news = News {
        position,
        revisions: BTreeMap::new(),
        changed: Changed::new(),
        more: i64::try_from(log.len()) == Ok(MOST),
    };
    for (seq, tenant_id, revision, table, id) in log {
        news.position = seq;
        news.revisions.insert(tenant_id, revision);
        news.changed.entry(table).or_default().insert(id);
    }
    Ok(news)
}
