//! The counts of a round.

use std::collections::BTreeMap;

use authority_decision::{Decision, trace::Observed};
use authority_model::schema::policy_observations;
use authority_store::{Db, RunQueryDsl};
use chrono::{DateTime, Utc};
use diesel::{QueryResult, pg::Pg, prelude::*};

use super::judging::Judgement;

/// An observation with decisions to count.
#[derive(Queryable, Selectable)]
#[diesel(table_name = policy_observations, check_for_backend(Pg))]
pub(super) struct Observation {
    policy_id: String,
    pub(super) tenant_id: String,
    version: i32,
    pub(super) since: DateTime<Utc>,
}

/// The counts of an observation.
#[derive(Default, PartialEq)]
struct Counts {
    allow: i64,
    require_approval: i64,
    deny: i64,
    changed: i64,
}

/// The number of decisions by their outcome and by the outcome that they would have had.
pub(super) type Outcomes = BTreeMap<(&'static str, &'static str), u64>;

/// The counts of a round, by policy and version.
pub(super) struct Tally {
    observations: BTreeMap<(String, i64), (Observation, Counts)>,
    pub(super) outcomes: Outcomes,
}

impl Tally {
    pub(super) fn new(observations: Vec<Observation>) -> Self {
        let keyed = observations
            .into_iter()
            .map(|one| ((one.policy_id.clone(), i64::from(one.version)), (one, Counts::default())));
        Self { observations: keyed.collect(), outcomes: Outcomes::new() }
    }

    pub(super) fn add(&mut self, judgement: &Judgement) {
        let Judgement { observed, decision, at } = judgement;
        observed.iter().for_each(|one| self.count(one, *decision, *at));
    }

    fn count(&mut self, observed: &Observed, decision: Decision, at: DateTime<Utc>) {
        let key = (String::from(observed.policy_id.as_str()), observed.version);
        let Some((observation, counts)) = self.observations.get_mut(&key) else { return };
        // An earlier observation of the same version has its own counts.
        if at < observation.since {
            return;
        }
        let would_be = observed.decision.folded();
        match would_be {
            Decision::Allow | Decision::AllowWithConstraints => counts.allow += 1,
            Decision::RequireApproval => counts.require_approval += 1,
            Decision::Deny => counts.deny += 1,
        }
        counts.changed += i64::from(observed.would_change);
        let outcome = (decision.folded().word(), would_be.word());
        *self.outcomes.entry(outcome).or_default() += 1;
    }

    /// Adds the counts to the stored ones, unless the observation was restarted. Rows are locked in
    /// order of policy and version.
    pub(super) async fn store(&self, db: &mut Db) -> QueryResult<()> {
        use policy_observations::dsl::{
            since, would_allow, would_change, would_deny, would_require_approval,
        };
        let counted = self.observations.values();
        for (observation, counts) in counted.filter(|(_, counts)| *counts != Counts::default()) {
            diesel::update(
                policy_observations::table.find((&observation.policy_id, observation.version)),
            )
            .filter(since.eq(observation.since))
            .set((
                would_allow.eq(would_allow + counts.allow),
                would_require_approval.eq(would_require_approval + counts.require_approval),
                would_deny.eq(would_deny + counts.deny),
                would_change.eq(would_change + counts.changed),
            ))
            .execute(db)
            .await?;
        }
        Ok(())
    }
}
