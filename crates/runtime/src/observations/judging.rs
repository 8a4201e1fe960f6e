//! Decides stored decisions again, with observing versions of policies in force.

use std::{mem, sync::Arc, time::Instant};

use authority_decision::{Decision, Draft, Request, decide, observe, trace::Observed};
use authority_evidence::{self as evidence, sealed, sealed::Outcome};
use authority_ledger::stored_decisions::Stored;
use authority_process::compute::{self, ComputePool};
use chrono::{DateTime, Utc};
use parking_lot::Mutex;

use crate::sealed_facts::SealedFacts;

/// The place in the queue of the compute pool, instead of a tenant's place: a busy tenant must not
/// keep the decisions of others from being counted.
const PLACE: &str = "policy_observations";
/// The number of rounds that a decision may spoil.
const TRIES: u32 = 3;

/// A decision that was made again.
pub(super) struct Judgement {
    pub(super) observed: Vec<Observed>,
    pub(super) decision: Decision,
    pub(super) at: DateTime<Utc>,
}

/// The judged decisions at the beginning of a page.
pub(super) struct Judged {
    pub(super) judgements: Vec<Judgement>,
    /// The first decision that was not judged.
    pub(super) next_id: Option<String>,
    /// Why it was not judged, unless the time was over.
    pub(super) fault: Option<compute::Error>,
}

/// The progress of the jobs.
#[derive(Default)]
struct Progress {
    begun: usize,
    ended: usize,
    judgements: Vec<Judgement>,
}

/// Judges decisions on the compute pool.
#[derive(Clone)]
pub(super) struct Judging {
    pool: ComputePool,
    spoilt: Arc<Mutex<Spoilt>>,
}

impl Judging {
    pub(super) fn new(pool: ComputePool) -> Self {
        Self { pool, spoilt: Arc::default() }
    }

    /// Judges decisions one after the other until the deadline, and at least one. It yields to other
    /// work after each turn.
    pub(super) async fn judge(&self, decisions: Vec<Stored>, deadline: Instant) -> Judged {
        let longest = deadline.saturating_duration_since(Instant::now());
        let decisions: Arc<[Stored]> = decisions.into();
        let progress = Arc::new(Mutex::new(Progress::default()));
        let mut facts = SealedFacts::default();
        let mut fault = None;
        loop {
            let place = progress.lock().ended;
            if place == decisions.len() || (place > 0 && Instant::now() >= deadline) {
                break;
            }
            let (all, done) = (Arc::clone(&decisions), Arc::clone(&progress));
            let turn = self.pool.run_within(PLACE, longest, move |turn| {
                for decision in &all[place..] {
                    if !turn.is_wanted() || turn.is_over() {
                        break;
                    }
                    done.lock().begun += 1;
                    let judgement = judged(&mut facts, decision);
                    let mut done = done.lock();
                    done.judgements.extend(judgement);
                    done.ended += 1;
                }
                facts
            });
            match turn.await {
                Ok(own) => facts = own,
                Err(error) => {
                    fault = Some(error);
                    break;
                }
            }
        }
        // A job that takes too long may still be running. Its later progress is not used.
        let Progress { begun, mut ended, judgements } = mem::take(&mut *progress.lock());
        if begun > ended
            && let Some(spoiling) = decisions.get(ended)
            && self.spoilt.lock().again(spoiling.id.as_str())
        {
            tracing::warn!(
                decision.id = spoiling.id.as_str(),
                "failed to judge a decision for observing policy versions"
            );
            ended += 1;
            fault = None;
        }
        let next_id = decisions.get(ended).map(|next| String::from(next.id.as_str()));
        Judged { judgements, next_id, fault }
    }
}

/// The decision at which the last round ended early, and the number of rounds that did.
#[derive(Default)]
struct Spoilt {
    id: String,
    rounds: u32,
}

impl Spoilt {
    /// Notes that a round ended at a decision. Returns whether to leave the decision out.
    fn again(&mut self, id: &str) -> bool {
        if self.id != id {
            *self = Self { id: id.to_owned(), rounds: 0 };
        }
        self.rounds += 1;
        self.rounds >= TRIES
    }
}

/// Decides a decision again. `None` if no version observed it, or if it cannot be decided again, such
/// as an erased one.
fn judged(facts: &mut SealedFacts, decision: &Stored) -> Option<Judgement> {
    judgement(facts, decision).unwrap_or_else(|error| {
        tracing::debug!(
            %error,
            decision.id = decision.id.as_str(),
            "skipped a decision in the counts of observing policies"
        );
        None
    })
}

fn judgement(
    facts: &mut SealedFacts,
    decision: &Stored,
) -> Result<Option<Judgement>, evidence::Error> {
    let stored = &decision.sealed;
    if !sealed::is_observed(stored.gathered()?)? {
        return Ok(None);
    }
    let recorded = stored.recorded()?;
    let asked = Draft { explain: false, ..stored.request()?.into_draft() };
    let unreadable = |_| evidence::Error::Unreadable("a stored request");
    let request = Request::new(asked).map_err(unreadable)?;
    let facts = facts.of(stored)?;
    let at = recorded.evaluated_at;
    let verdict = decide(&request, &facts, at);
    if Outcome::from(&verdict) != recorded.outcome {
        return Err(evidence::Error::Unreadable("its outcome"));
    }
    let observed = observe(&request, &facts, at, &verdict);
    Ok(Some(Judgement { observed, decision: verdict.decision, at }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_that_spoils_rounds_in_a_row_is_left_out() {
        let mut spoilt = Spoilt::default();
        assert_eq!(["a", "a", "a"].map(|id| spoilt.again(id)), [false, false, true]);
        assert_eq!(["b", "b", "c", "b"].map(|id| spoilt.again(id)), [false; 4]);
    }
}
