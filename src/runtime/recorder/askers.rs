//! Who asked a held question, kept with the request that it waits for: in the hold's own transaction, so
//! that nobody approves who asked before.

use authority_model::proto::approval::Asker;
use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Array, Bool, Text},
};

use super::{entry::Entry, sql::run_queries};
use authority_engine::store::{Db, RunQueryDsl};

/// A request that is open, by tenant and digest.
pub(super) struct Open {
    pub(super) id: String,
    pub(super) requested_by: Vec<Asker>,
}

/// Adds those who ask what others asked before. Each entry with the request that it waits for.
///
/// # Errors
/// [`diesel::result::Error::NotFound`] where a request has been decided upon meanwhile: the batch is
/// tried again, and opens a new one.
pub(super) async fn add(db: &mut Db, held: &[(&Entry, &Open)]) -> QueryResult<()> {
    let mut new = AddAskers::default();
    for (entry, open) in held {
        let Some(hold) = &entry.hold else { continue };
        if !open.requested_by.contains(&hold.asked_by) {
            new.id.push(&open.id);
            new.kind.push(&hold.asked_by.kind);
            new.asker.push(&hold.asked_by.id);
            new.nobody_eligible.push(hold.nobody_eligible);
        }
    }
    if new.id.is_empty() {
        return Ok(());
    }
    let mut wanted = new.id.clone();
    wanted.sort_unstable();
    wanted.dedup();
    let added: Vec<String> = new.load(db).await?;
    if added.len() < wanted.len() { Err(diesel::result::Error::NotFound) } else { Ok(()) }
}

/// Adds askers to requests that are still pending, each once; the requests' ids.
#[derive(Default)]
struct AddAskers<'a> {
    id: Vec<&'a str>,
    kind: Vec<&'a str>,
    asker: Vec<&'a str>,
    nobody_eligible: Vec<bool>,
}

impl Query for AddAskers<'_> {
    type SqlType = Text;
}

impl QueryFragment<Pg> for AddAskers<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        // Which of them are new is asked of the row as it is once it is locked: another node may have
        // added them.
        out.push_sql(
            "WITH asking (i, askers, nobody) AS MATERIALIZED ( \
                SELECT i, array_agg(DISTINCT jsonb_build_object('kind', k, 'id', a)), bool_or(n) \
                FROM UNNEST(",
        );
        for column in [&self.id, &self.kind, &self.asker] {
            out.push_bind_param::<Array<Text>, _>(column)?;
            out.push_sql(", ");
        }
        out.push_bind_param::<Array<Bool>, _>(&self.nobody_eligible)?;
        // In one order on all nodes, or two of them could wait for each other.
        out.push_sql(
            ") AS each (i, k, a, n) GROUP BY i), \
             pending AS MATERIALIZED ( \
                SELECT id, requested_by AS known FROM approvals \
                WHERE state = 'pending' AND id IN (SELECT i FROM asking) ORDER BY id FOR UPDATE) \
             UPDATE approvals SET \
                requested_by = requested_by || ARRAY( \
                    SELECT asker FROM unnest(askers) AS asker WHERE asker <> ALL (known)), \
                eligible = CASE WHEN nobody THEN 'none' ELSE eligible END, \
                updated_at = clock_timestamp() \
             FROM pending JOIN asking ON i = pending.id WHERE approvals.id = pending.id \
             RETURNING approvals.id",
        );
        Ok(())
    }
}

run_queries!(AddAskers);
