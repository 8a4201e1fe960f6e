//! Counts decisions by day and tenant. Each decision is counted exactly once.
//!
//! Decisions are counted in the order of their IDs, which is the order of their times. The cursor
//! moves in the transaction of the counts. A decision may be committed later than others with
//! higher IDs. The cursor therefore stays behind the newest decisions. A decision is stored within
//! [`SETTLED`] of its time (`recorder/decisions_sql.rs`), but its transaction may last longer. Each
//! round therefore stores its time and its transaction ID. When all transactions with lower IDs
//! have ended, every decision inserted before the stored time is either visible or rolled back.

use std::time::Duration;

use authority_decision::Decision;
use authority_ids::DecisionId;
use authority_process::worker::{Next, Worker};
use authority_store::{self as store, Db, RunQueryDsl, Scope, Store};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    QueryResult, QueryableByName,
    prelude::*,
    sql_types::{Array, BigInt, Bool, Text, Timestamptz},
};

use crate::decision_filter::{first_id, found_by};

const EVERY: Duration = Duration::from_secs(10);
/// The longest time between a decision and its storage. It is the recorder's limit of 7 s plus the
/// possible difference of clocks, with a wide margin.
pub(crate) const SETTLED: TimeDelta = TimeDelta::seconds(60);
/// The maximum number of decisions counted in one transaction.
const PART: i64 = 50_000;
/// How long counts are kept.
const KEPT_DAYS: i64 = 400;

/// Reads the cursor, unless another node has locked it. In a restored database, transaction IDs may
/// be lower than the stored one (`is_foreign`).
const CURSOR: &str = "SELECT counted_until, seen_at, \
         seen_xid <= pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS is_settled, \
         seen_xid >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS is_foreign \
     FROM usage_cursor FOR UPDATE SKIP LOCKED";

/// Finds the first decision after the part to count.
const PAST: &str =
    "SELECT id FROM decisions WHERE id >= $1 AND id < $2 ORDER BY id OFFSET $3 LIMIT 1";

const COUNT: &str = "INSERT INTO usage_days AS u (tenant_id, day, allow, require_approval, deny) \
     SELECT tenant_id, (evaluated_at AT TIME ZONE 'UTC')::date, \
            count(*) FILTER (WHERE decision = ANY ($3)), \
            count(*) FILTER (WHERE decision = ANY ($4)), \
            count(*) FILTER (WHERE decision = ANY ($5)) \
     FROM decisions WHERE id >= $1 AND id < $2 GROUP BY 1, 2 \
     ON CONFLICT (tenant_id, day) DO UPDATE SET \
         allow = u.allow + EXCLUDED.allow, \
         require_approval = u.require_approval + EXCLUDED.require_approval, \
         deny = u.deny + EXCLUDED.deny";

const MOVE: &str = "UPDATE usage_cursor SET counted_until = $1";

/// Stores this transaction's start time and ID. The transaction gets its ID after its start. Data
/// stored before its start therefore has a lower transaction ID. A snapshot's `xmax` is not
/// sufficient, because transactions with this ID or a higher one may be in progress.
const LOOK: &str = "UPDATE usage_cursor SET seen_at = transaction_timestamp(), \
     seen_xid = pg_current_xact_id()::text::bigint";

const FORGET: &str = "DELETE FROM usage_days WHERE day < $1::date - $2::integer";

#[derive(QueryableByName)]
struct Cursor {
    #[diesel(sql_type = Text)]
    counted_until: String,
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

/// Maintains the counts. Nodes take turns.
#[derive(Clone)]
pub struct UsageRollUp {
    store: Store,
}

impl UsageRollUp {
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    pub(crate) fn worker(self) -> Worker {
        Worker::periodic("usage", EVERY, move || {
            let roll_up = self.clone();
            async move {
                let has_more = roll_up.round().await?;
                Ok::<_, store::Error>(if has_more {
                    Next::After(Duration::ZERO)
                } else {
                    Next::Usual
                })
            }
        })
    }

    /// Counts a part of the settled decisions. Returns whether there is more.
    ///
    /// # Errors
    /// The database is unavailable. No decisions were counted.
    pub async fn round(&self) -> Result<bool, store::Error> {
        let round = async |db: &mut Db| Ok::<_, store::Error>(round(db).await?);
        self.store.write_tx(&Scope::service(), round).await
    }
}

async fn round(db: &mut Db) -> QueryResult<bool> {
    let Some(cursor) = diesel::sql_query(CURSOR).get_result::<Cursor>(db).await.optional()? else {
        return Ok(false);
    };
    if cursor.is_foreign {
        look(db).await?;
        return Ok(false);
    }
    if !cursor.is_settled {
        return Ok(false);
    }
    let (from, end) = (cursor.counted_until, first_id((cursor.seen_at - SETTLED).into()));
    let mut has_more = false;
    if from < end {
        let past = diesel::sql_query(PAST)
            .bind::<Text, _>(&from)
            .bind::<Text, _>(&end)
            .bind::<BigInt, _>(PART);
        let past = past.get_result::<Past>(db).await.optional()?.map(|past| past.id);
        has_more = past.is_some();
        count(db, &from, &past.unwrap_or(end)).await?;
    }
    if !has_more {
        look(db).await?;
        diesel::sql_query(FORGET)
            .bind::<Timestamptz, _>(cursor.seen_at)
            .bind::<BigInt, _>(KEPT_DAYS)
            .execute(db)
            .await?;
    }
    Ok(has_more)
}

async fn count(db: &mut Db, from: &str, until: &str) -> QueryResult<()> {
    let [allow, hold, deny] =
        [Decision::Allow, Decision::RequireApproval, Decision::Deny].map(found_by);
    diesel::sql_query(COUNT)
        .bind::<Text, _>(from)
        .bind::<Text, _>(until)
        .bind::<Array<Text>, _>(allow)
        .bind::<Array<Text>, _>(hold)
        .bind::<Array<Text>, _>(deny)
        .execute(db)
        .await?;
    diesel::sql_query(MOVE).bind::<Text, _>(until).execute(db).await?;
    Ok(())
}

async fn look(db: &mut Db) -> QueryResult<()> {
    diesel::sql_query(LOOK).execute(db).await.map(drop)
}

/// Returns the time in a decision's ID, or in the first ID of a range.
pub(super) fn time_of(id: &str) -> Option<DateTime<Utc>> {
    let millis = id.strip_prefix(DecisionId::PREFIX)?.get(..12)?;
    DateTime::from_timestamp_millis(i64::from_str_radix(millis, 16).ok()?)
}
