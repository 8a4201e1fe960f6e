//! The counts of observing versions. A worker of the runtime writes them.

use std::collections::HashMap;

use authority_ids::DecisionId;
use authority_model::{
    proto::registry::PolicyObservation,
    schema::{observation_cursor, policy_observations},
    wire::Time,
};

use crate::flow::prelude::*;
use authority_store as store;

/// The counts of a version.
#[derive(Queryable, Selectable)]
#[diesel(table_name = policy_observations, check_for_backend(Pg))]
struct Counted {
    policy_id: String,
    version: i32,
    since: Time,
    ended_at: Option<Time>,
    would_allow: i64,
    would_require_approval: i64,
    would_deny: i64,
    would_change: i64,
}

/// Observations by policy and version.
pub(super) type Observations = HashMap<(String, i32), PolicyObservation>;

/// Returns the last observation of each version of these policies.
///
/// # Errors
/// The store can't be read.
pub(super) async fn of_policies(db: &mut Db, ids: &[String]) -> Result<Observations, store::Error> {
    let rows: Vec<Counted> = policy_observations::table
        .filter(policy_observations::policy_id.eq_any(ids))
        .select(Counted::as_select())
        .load(db)
        .await?;
    if rows.is_empty() {
        return Ok(Observations::new());
    }
    // All observations are counted up to the same time. One that began later has no counts yet.
    let cursor: String =
        observation_cursor::table.select(observation_cursor::counted_until).first(db).await?;
    let counted = Time::from_micros(DecisionId::millis(&cursor).unwrap_or_default() * 1000);
    let observations = rows.into_iter().map(|row| {
        let counted_until = row.ended_at.map_or(counted, |end| counted.min(end)).max(row.since);
        let observation = PolicyObservation {
            since: Some(row.since),
            ended_at: row.ended_at,
            counted_until: Some(counted_until),
            would_allow: row.would_allow,
            would_require_approval: row.would_require_approval,
            would_deny: row.would_deny,
            would_change: row.would_change,
        };
        ((row.policy_id, row.version), observation)
    });
    Ok(observations.collect())
}
