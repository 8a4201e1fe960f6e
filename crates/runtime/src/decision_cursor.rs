//! The position of a worker that processes each stored decision exactly once.
//!
//! Decisions are processed in the order of their IDs, which is the order of their times. The cursor
//! moves in the transaction that stores the work. A decision may be committed later than others with higher
//! IDs. The cursor therefore stays behind the newest decisions. A decision is stored within
//! [`SETTLED`] of its time (`recorder/decisions_sql.rs`), but its transaction may last longer. Each
//! round therefore stores its time and its transaction ID. When all transactions with lower IDs
//! have ended, every decision inserted before the stored time is either visible or rolled back.

use authority_ids::DecisionId;
use authority_store::{Db, RunQueryDsl};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    QueryResult, QueryableByName,
    prelude::*,
    sql_types::{BigInt, Bool, Text, Timestamptz},
};

use crate::decision_filter::first_id;

/// The longest time between a decision and its storage. It is the recorder's limit of 7 s plus the
/// possible difference of clocks, with a wide margin.
pub(crate) const SETTLED: TimeDelta = TimeDelta::seconds(60);

/// Finds the first decision after the part to process.
const PAST: &str =
    "SELECT id FROM decisions WHERE id >= $1 AND id < $2 ORDER BY id OFFSET $3 LIMIT 1";

/// A table with the cursor in one row.
pub(crate) struct DecisionCursor {
    pub(crate) table: &'static str,
    /// The column with the ID. Decisions with lower IDs are processed.
    pub(crate) until: &'static str,
}

/// A range of settled decisions to process.
pub(crate) struct Part {
    pub(crate) from: String,
    /// The end, exclusive.
    pub(crate) until: String,
    /// Whether more settled decisions follow.
    pub(crate) has_more: bool,
    /// The time before which all decisions are settled, later than `until` by [`SETTLED`].
    pub(crate) seen_at: DateTime<Utc>,
}

impl Part {
    pub(crate) fn is_empty(&self) -> bool {
        self.from >= self.until
    }
}

#[derive(QueryableByName)]
struct CursorRow {
    #[diesel(sql_type = Text)]
    until: String,
    #[diesel(sql_type = Timestamptz)]
    seen_at: DateTime<Utc>,
    #[diesel(sql_type = Bool)]
    is_settled: bool,
    #[diesel(sql_type = Bool)]
    is_foreign: bool,
}

#[derive(QueryableByName)]
struct Past {
    #[diesel(sql_type = Text)]
    id: String,
}

impl DecisionCursor {
    /// Locks the cursor and returns up to `most` decisions to process. `None` if another node has
    /// locked the cursor, or if transactions that may add decisions are in progress.
    pub(crate) async fn next(&self, db: &mut Db, most: i64) -> QueryResult<Option<Part>> {
        let Some(cursor) = self.read(db).await? else { return Ok(None) };
        if cursor.is_foreign {
            self.look(db).await?;
            return Ok(None);
        }
        if !cursor.is_settled {
            return Ok(None);
        }
        let (from, end) = (cursor.until, first_id((cursor.seen_at - SETTLED).into()));
        let past = diesel::sql_query(PAST)
            .bind::<Text, _>(&from)
            .bind::<Text, _>(&end)
            .bind::<BigInt, _>(most);
        let past = past.get_result::<Past>(db).await.optional()?.map(|past| past.id);
        let has_more = past.is_some();
        let until = past.unwrap_or(end);
        Ok(Some(Part { from, until, has_more, seen_at: cursor.seen_at }))
    }

    /// Reads the cursor, unless another node has locked it. In a restored database, transaction IDs
    /// may be lower than the stored one (`is_foreign`).
    async fn read(&self, db: &mut Db) -> QueryResult<Option<CursorRow>> {
        let Self { table, until } = self;
        let sql = format!(
            "SELECT {until} AS until, seen_at, \
                 seen_xid <= pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS is_settled, \
                 seen_xid >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS is_foreign \
             FROM {table} FOR UPDATE SKIP LOCKED"
        );
        diesel::sql_query(sql).get_result(db).await.optional()
    }

    /// Moves the cursor to the end of a processed part.
    pub(crate) async fn advance(&self, db: &mut Db, until: &str) -> QueryResult<()> {
        let sql = format!("UPDATE {} SET {} = $1", self.table, self.until);
        diesel::sql_query(sql).bind::<Text, _>(until).execute(db).await.map(drop)
    }

    /// Moves the cursor if it is still where a round without a lock read it. Returns whether it was.
    pub(crate) async fn advance_from(
        &self,
        db: &mut Db,
        from: &str,
        until: &str,
    ) -> QueryResult<bool> {
        let Self { table, until: column } = self;
        let sql = format!("UPDATE {table} SET {column} = $1 WHERE {column} = $2");
        let moved = diesel::sql_query(sql).bind::<Text, _>(until).bind::<Text, _>(from);
        Ok(moved.execute(db).await? == 1)
    }

    /// Stores this transaction's start time and ID. The transaction gets its ID after its start. Data
    /// stored before its start therefore has a lower transaction ID. A snapshot's `xmax` is not
    /// sufficient, because transactions with this ID or a higher one may be in progress.
    pub(crate) async fn look(&self, db: &mut Db) -> QueryResult<()> {
        let sql = format!(
            "UPDATE {} SET seen_at = transaction_timestamp(), \
                 seen_xid = pg_current_xact_id()::text::bigint",
            self.table
        );
        diesel::sql_query(sql).execute(db).await.map(drop)
    }
}

/// Returns the time in a decision's ID, or in the first ID of a range.
pub(crate) fn time_of(id: &str) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(DecisionId::millis(id)?)
}
