//! Keeps the use of a budget when the length of its window or its currency changes. Uses are
//! counted in windows of a fixed length, and a window of another length would begin at zero. Amounts
//! of two currencies have no sum.

use authority_decision::{facts::Counts, moment};
use authority_graph::{Fence, hold_fence};
use authority_model::schema::counters;
use chrono::{DateTime, Utc};
use diesel::{
    dsl::sql,
    sql_types::{BigInt, Integer, Nullable, Text, Timestamptz},
};

use crate::flow::prelude::*;

/// The lengths in seconds of a holder's windows for the number of uses and for the total amount.
pub(crate) type Windows = [(Counts, Option<i32>); 2];

/// The holder of bounds, with the ids that its counters have.
pub(crate) struct Holder<'a> {
    pub(crate) tenant_id: &'a str,
    pub(crate) id: &'a str,
}

/// Returns the problem with another currency, or none, while amounts in the old one count in a
/// window that has not ended.
///
/// Takes the fence, like [`carry`].
pub(crate) async fn check_currency(
    db: &mut Db,
    holder: &Holder<'_>,
    (was, new): (Option<&str>, Option<&str>),
    now: DateTime<Utc>,
) -> Result<Option<String>, Error> {
    let Some(was) = was.filter(|was| new != Some(*was)) else { return Ok(None) };
    hold_fence(db, Fence::Alone).await?;
    let ends: Option<i64> = counters::table
        .filter(counters::tenant_id.eq(holder.tenant_id))
        .filter(counters::holder_id.eq(holder.id))
        .filter(counters::counts.eq(Counts::Amount.word()))
        .filter(counters::used.gt(0))
        .select(sql::<Nullable<BigInt>>("max(window_start + window_seconds)"))
        .first(db)
        .await?;
    let ends = ends.and_then(|ends| DateTime::from_timestamp(ends, 0)).filter(|ends| *ends > now);
    Ok(ends
        .map(|ends| format!("cannot change: amounts in {was} count until {}", moment::text(ends))))
}

/// Starts each window with a new length at the amount or number used in the holder's current
/// window.
///
/// Takes the fence: a decision that commits later is made under the new bounds. Lock the rows
/// before the call.
pub(crate) async fn carry(
    db: &mut Db,
    holder: Holder<'_>,
    was: Windows,
    new: Windows,
    now: DateTime<Utc>,
) -> QueryResult<()> {
    let changed = was.into_iter().zip(new).filter(|((_, was), (_, new))| was != new);
    let changed: Vec<_> =
        changed.filter_map(|(_, (counts, length))| Some((counts, length?))).collect();
    if changed.is_empty() {
        return Ok(());
    }
    hold_fence(db, Fence::Alone).await?;
    for (counts, length) in changed {
        diesel::sql_query("SELECT carry_counter($1, $2, $3, $4, $5)")
            .bind::<Text, _>(holder.tenant_id)
            .bind::<Text, _>(holder.id)
            .bind::<Text, _>(counts.word())
            .bind::<Integer, _>(length)
            .bind::<Timestamptz, _>(now)
            .execute(db)
            .await?;
    }
    Ok(())
}
