//! The age of snapshots, computed on each read with the database's clock.

use std::collections::HashMap;

use authority_model::{
    proto::reality::RealitySnapshot,
    schema::reality_anchors,
    wire::{Json, Time},
};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::flow::prelude::*;

/// Returns the database's current time.
pub(super) async fn database_now(db: &mut Db) -> Result<Time, Error> {
    Ok(diesel::select(clock_timestamp()).get_result(db).await?)
}

/// Converts a time from the database. It is always within the calendar's range.
pub(super) fn moment(time: Time) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(time.micros()).unwrap_or_default()
}

/// Returns the maximum age in seconds by an anchor's contract. `None` without a maximum.
pub(super) fn max_staleness(contract: Option<&Json>) -> Option<i64> {
    contract?.0.get("max_staleness_seconds")?.as_i64()
}

/// Whether a snapshot is stale at a time. It is stale if it is older than its anchor's contract
/// allows, or if its own `valid_until` has passed.
pub(super) fn is_stale(snapshot: &RealitySnapshot, most: Option<i64>, now: DateTime<Utc>) -> bool {
    let sampled = snapshot.sampled_at.map(moment).unwrap_or_default();
    let by_contract =
        most.and_then(TimeDelta::try_seconds).is_some_and(|most| now - sampled >= most);
    by_contract || snapshot.valid_until.is_some_and(|until| moment(until) <= now)
}

/// Sets the computed entries of `freshness`. Other entries are kept.
pub(super) async fn fill(db: &mut Db, rows: &mut [RealitySnapshot]) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let now = moment(database_now(db).await?);
    let ids: Vec<_> = rows.iter().map(|row| row.anchor_id.clone()).collect();
    let contracts: Vec<(String, Option<Json>)> = reality_anchors::table
        .filter(reality_anchors::id.eq_any(ids))
        .select((reality_anchors::id, reality_anchors::freshness_contract))
        .load(db)
        .await?;
    let contracts: HashMap<_, _> = contracts.into_iter().collect();
    for row in rows {
        let contract = contracts.get(&row.anchor_id).and_then(Option::as_ref);
        let most = max_staleness(contract);
        let sampled = row.sampled_at.map(moment).unwrap_or_default();
        let computed = [
            ("age_seconds", json!((now - sampled).num_seconds().max(0))),
            ("is_stale", json!(is_stale(row, most, now))),
            ("max_staleness_seconds", most.map_or(Value::Null, Value::from)),
        ];
        let freshness = row.freshness.get_or_insert_default();
        freshness.0.extend(computed.map(|(name, value)| (name.to_owned(), value)));
    }
    Ok(())
}
