//! Counts what decisions would have been with an observing version of a policy in force, after they
//! were committed (`decision_cursor.rs`). Each decision is counted exactly once.
//!
//! Judging takes longer than a transaction may. A round therefore reads decisions, judges them, and
//! then stores the counts and the cursor in a second transaction. If another node has moved the
//! cursor in the meantime, the counts are dropped.

mod judging;
mod tally;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use authority_api::error::ApiError;
use authority_ledger::stored_decisions::{DecisionRow, Stored, complete};
use authority_model::schema::{decisions, observation_cursor, policy_observations};
use authority_process::{
    compute::ComputePool,
    worker::{Next, Worker},
};
use authority_store::{self as store, Db, RunQueryDsl, Scope, Store};
use chrono::TimeDelta;
use diesel::{QueryResult, prelude::*};

use self::{
    judging::{Judged, Judging},
    tally::{Observation, Outcomes, Tally},
};
use super::{
    decision_cursor::{DecisionCursor, time_of},
    decision_filter::first_id,
};

const EVERY: Duration = Duration::from_secs(10);
/// The maximum number of decisions in a round, of all tenants.
const PART: i64 = 500;
/// The time after which a round judges no further decision.
const LONGEST: Duration = Duration::from_secs(4);
/// The time after an observation's end in which a decision may still name it.
const ENDING: TimeDelta = TimeDelta::seconds(1);

const CURSOR: DecisionCursor =
    DecisionCursor { table: "observation_cursor", until: "counted_until" };

/// The decisions of a round.
struct Page {
    /// The cursor.
    cursor: String,
    /// The end of the page, exclusive.
    until: String,
    has_more: bool,
    /// In order of id.
    decisions: Vec<Stored>,
    observations: Vec<Observation>,
}

/// Maintains the counts. Nodes take turns.
#[derive(Clone)]
pub struct PolicyObserver {
    store: Store,
    judging: Judging,
}

impl PolicyObserver {
    pub fn new(store: Store, pool: ComputePool) -> Self {
        Self { store, judging: Judging::new(pool) }
    }

    pub(crate) fn worker(self) -> Worker {
        Worker::periodic("policy_observations", EVERY, move || {
            let observer = self.clone();
            async move {
                let has_more = observer.round().await?;
                Ok::<_, ApiError>(if has_more { Next::After(Duration::ZERO) } else { Next::Usual })
            }
        })
    }

    /// Counts a part of the settled decisions. Returns whether there is more.
    ///
    /// # Errors
    /// The database is unavailable. Then no decision is counted. Or too many computations are running.
    /// Then the decisions that were judged before are counted.
    pub async fn round(&self) -> Result<bool, ApiError> {
        let read = async |db: &mut Db| Ok::<_, store::Error>(next_page(db).await?);
        let page: Option<Page> = self.store.write_tx(&Scope::service(), read).await?;
        let Some(page) = page else { return Ok(false) };
        let deadline = Instant::now() + LONGEST;
        let Judged { judgements, next_id, fault } =
            self.judging.judge(page.decisions, deadline).await;
        let mut tally = Tally::new(page.observations);
        judgements.iter().for_each(|judgement| tally.add(judgement));
        let is_end = next_id.is_none() && !page.has_more;
        let (cursor, until) = (page.cursor, next_id.unwrap_or(page.until));
        let write = async move |db: &mut Db| {
            if !CURSOR.advance_from(db, &cursor, &until).await? {
                return Ok(None);
            }
            tally.store(db).await?;
            if is_end {
                CURSOR.look(db).await?;
            }
            Ok::<_, store::Error>(Some(tally.outcomes))
        };
        let counted: Option<Outcomes> = self.store.write_tx(&Scope::service(), write).await?;
        let has_more = counted.is_some() && !is_end;
        note(counted.unwrap_or_default());
        fault.map_or(Ok(has_more), |fault| Err(fault.into()))
    }
}

/// Adds to the metric.
fn note(outcomes: Outcomes) {
    for ((decision, would_be), count) in outcomes {
        metrics::counter!(
            "authority_policy_observations_total",
            "decision" => decision,
            "would_be" => would_be
        )
        .increment(count);
    }
}

/// Reads the next decisions. `None` if none can be counted now.
async fn next_page(db: &mut Db) -> QueryResult<Option<Page>> {
    let observations = uncounted(db).await?;
    let first = observations.iter().map(|one| one.since).min();
    // Most installations observe no policy at most times.
    let Some(first) = first else { return Ok(None) };
    let Some(part) = CURSOR.next(db, PART).await? else { return Ok(None) };
    // Decisions from before the observations are not counted.
    let from = part.from.clone().max(first_id(first.into()));
    let until = part.until.max(from.clone());
    let decisions = if from < until {
        decisions_of(db, &observations, &from, &until).await?
    } else {
        Vec::new()
    };
    Ok(Some(Page { cursor: part.from, until, has_more: part.has_more, decisions, observations }))
}

/// Reads the observations that have not ended, or ended after the last counted decision.
async fn uncounted(db: &mut Db) -> QueryResult<Vec<Observation>> {
    use policy_observations::dsl::ended_at;
    let cursor: String =
        observation_cursor::table.select(observation_cursor::counted_until).first(db).await?;
    let counted = time_of(&cursor).unwrap_or_default();
    policy_observations::table
        .filter(ended_at.is_null().or(ended_at.gt(counted - ENDING)))
        .select(Observation::as_select())
        .load(db)
        .await
}

/// Reads the decisions of the observations' tenants in a range of ids, in order of id.
async fn decisions_of(
    db: &mut Db,
    observations: &[Observation],
    from: &str,
    until: &str,
) -> QueryResult<Vec<Stored>> {
    let tenants: BTreeSet<&str> = observations.iter().map(|one| one.tenant_id.as_str()).collect();
    let rows: Vec<DecisionRow> = decisions::table
        .filter(decisions::tenant_id.eq_any(tenants))
        .filter(decisions::id.ge(from))
        .filter(decisions::id.lt(until))
        .order(decisions::id)
        .select(DecisionRow::as_select())
        .load(db)
        .await?;
    complete(db, rows).await
}
