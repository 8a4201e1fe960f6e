//! Counts decisions by hour and by day. Each decision is counted exactly once
//! (`decision_cursor.rs`).

use std::time::Duration;

use authority_decision::Decision;
use authority_process::worker::{Next, Worker};
use authority_store::{self as store, Db, RunQueryDsl, Scope, Store};
use diesel::{
    QueryResult,
    sql_types::{Array, Text, Timestamptz},
};

use crate::{decision_cursor::DecisionCursor, decision_filter::found_by};

const EVERY: Duration = Duration::from_secs(10);
/// The maximum number of decisions counted in one transaction.
const PART: i64 = 50_000;

const CURSOR: DecisionCursor = DecisionCursor { table: "usage_cursor", until: "counted_until" };

/// A hash table of the counts then fits into memory. Sorting the decisions took longer.
const MEMORY: &str = "SET LOCAL work_mem = '32MB'";

/// Counts a range of decisions in one pass, by hour, and adds the hours up to days.
const COUNT: &str = "WITH counted AS MATERIALIZED ( \
         SELECT tenant_id, date_trunc('hour', evaluated_at, 'UTC') AS starts_at, \
                subject, action, reason_code, \
                count(*) FILTER (WHERE decision = ANY ($3)) AS allow, \
                count(*) FILTER (WHERE decision = ANY ($4)) AS require_approval, \
                count(*) FILTER (WHERE decision = ANY ($5)) AS deny \
         FROM decisions WHERE id >= $1 AND id < $2 GROUP BY 1, 2, 3, 4, 5), \
     hours AS ( \
         INSERT INTO usage_hours AS u SELECT * FROM counted \
         ON CONFLICT (tenant_id, starts_at, subject, action, reason_code) DO UPDATE SET \
             allow = u.allow + EXCLUDED.allow, \
             require_approval = u.require_approval + EXCLUDED.require_approval, \
             deny = u.deny + EXCLUDED.deny) \
     INSERT INTO usage_days AS u \
     SELECT tenant_id, date_trunc('day', starts_at, 'UTC'), subject, action, reason_code, \
            sum(allow)::bigint, sum(require_approval)::bigint, sum(deny)::bigint \
     FROM counted GROUP BY 1, 2, 3, 4, 5 \
     ON CONFLICT (tenant_id, starts_at, subject, action, reason_code) DO UPDATE SET \
         allow = u.allow + EXCLUDED.allow, \
         require_approval = u.require_approval + EXCLUDED.require_approval, \
         deny = u.deny + EXCLUDED.deny";

/// Deletes old counts.
const FORGET: [&str; 2] = [
    "DELETE FROM usage_hours WHERE starts_at < $1 - interval '90 days'",
    "DELETE FROM usage_days WHERE starts_at < $1 - interval '3 years'",
];

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
    let Some(part) = CURSOR.next(db, PART).await? else { return Ok(false) };
    if !part.is_empty() {
        count(db, &part.from, &part.until).await?;
    }
    if !part.has_more {
        CURSOR.look(db).await?;
        for forget in FORGET {
            diesel::sql_query(forget).bind::<Timestamptz, _>(part.seen_at).execute(db).await?;
        }
    }
    Ok(part.has_more)
}

async fn count(db: &mut Db, from: &str, until: &str) -> QueryResult<()> {
    let [allow, hold, deny] =
        [Decision::Allow, Decision::RequireApproval, Decision::Deny].map(found_by);
    diesel::sql_query(MEMORY).execute(db).await?;
    diesel::sql_query(COUNT)
        .bind::<Text, _>(from)
        .bind::<Text, _>(until)
        .bind::<Array<Text>, _>(allow)
        .bind::<Array<Text>, _>(hold)
        .bind::<Array<Text>, _>(deny)
        .execute(db)
        .await?;
    CURSOR.advance(db, until).await
}
