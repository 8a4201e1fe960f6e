//! Finds the smallest change that would turn a denial into a permit or a hold. Usually this is a
//! single change, or two or three.
//!
//! It is only an explanation: decisions do not depend on it. It tries changes in the order of
//! [`STEPS`], runs [`decide`] on each, and returns the first that helps. First come the changes
//! that the requester can make, then the grants that people must make, and last the prohibitions
//! that people must lift:
//!
//! 1. `purpose`: another purpose that the delegations are bound to
//! 2. `amount`: the largest amount that passes, by the bounds; by bisection if a rule is tighter
//! 3. `jurisdiction`: another jurisdiction of the authorities and the purpose
//! 4. `delegation`: another delegation of the subject, or none
//! 5. `wait`: the same request in a later window of a budget
//! 6. `grant`: access to the resource, workspace or project, or the action itself
//! 7. `link`: a delegation or row that is expired, not valid yet, suspended or revoked
//! 8. `principal`: the subject or a delegator that is not active
//! 9. `context`: a field that the tool or a bound requires
//! 10. `declaration`: the riskiest tier that passes, if the request does not declare a tier
//! 11. `stop`, `quarantine`, `denial`: lifting a signal, a quarantine or a denying row
//!
//! If no single change helps, sets of two and then of three are tried (`sets.rs`). The work is
//! bounded: [`MOST_TRIES`] decisions for each step, [`MOST_FOR_SETS`] for each size of set. A
//! change may therefore exist even if none is returned. Policies and reality are never changed:
//! they are intended, and the trace names them.

mod amount;
mod granted;
mod request_changes;
mod sets;
mod wait;

use std::{cell::Cell, collections::BTreeSet};

use chrono::{DateTime, Utc};

use super::{
    authority,
    bounds::Bounds,
    case::Case,
    decide,
    facts::{Constraints, Facts, Gathered},
    levels::{Decision, words},
    reason::Reason,
    request::{Draft, Request},
};
use serde::{Deserialize, Serialize};

words! {
    /// The kind of a change.
    Kind {
        Purpose "purpose",
        Amount "amount",
        Jurisdiction "jurisdiction",
        Delegation "delegation",
        Wait "wait",
        Grant "grant",
        Link "link",
        Principal "principal",
        Context "context",
        Declaration "declaration",
        Stop "stop",
        Quarantine "quarantine",
        Denial "denial",
    }
}

impl Kind {
    /// Whether the requester makes the change, in the request or its time. Otherwise people make it
    /// in the records.
    const fn is_said(self) -> bool {
        matches!(
            self,
            Self::Purpose
                | Self::Amount
                | Self::Jurisdiction
                | Self::Delegation
                | Self::Wait
                | Self::Context
                | Self::Declaration
        )
    }
}

/// One change to the request or its records, for programs, with a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: Kind,
    /// The field of the request or of the record that changes.
    pub member: Option<String>,
    /// The new value; `None` if only the requester knows it, or if the field is removed.
    pub value: Option<String>,
    /// The record that changes, or that the change is about.
    pub id: Option<String>,
    /// The change as a sentence for people.
    pub sentence: String,
}

/// One to three changes that help together, and the resulting decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    pub changes: Vec<Change>,
    pub decision: Decision,
    pub reason_code: Reason,
}

/// Returns the facts of a changed request, if available.
///
/// The original facts may lack the purpose or the delegation that the changed request names.
pub type Around<'a> = dyn Fn(&Request) -> Option<Facts> + 'a;

enum Step {
    /// Tries each of these changes.
    Propose(fn(&Search<'_>, &State) -> Vec<Change>),
    /// Searches for a change that depends on all other changes, and is therefore made last.
    Last(fn(&Search<'_>, &State) -> Option<State>),
}

const STEPS: [Step; 13] = [
    Step::Propose(request_changes::purpose),
    Step::Last(amount::largest),
    Step::Propose(request_changes::jurisdiction),
    Step::Propose(request_changes::delegation),
    Step::Last(wait::shortest),
    Step::Propose(granted::grant),
    Step::Propose(granted::link),
    Step::Propose(granted::principal),
    Step::Propose(request_changes::context),
    Step::Propose(request_changes::declaration),
    Step::Propose(granted::stop),
    Step::Propose(granted::quarantine),
    Step::Propose(granted::denial),
];

/// The maximum number of changes that a step tries. It keeps a subject with very many delegations
/// from occupying a core for long.
const MOST_TRIES: u32 = 128;
/// The maximum number of changes to try for sets of two, and again for sets of three.
const MOST_FOR_SETS: u32 = 768;

/// Returns the first change that helps, or otherwise the first set of changes.
///
/// Returns `None` if the request is not denied, if no change was found, or if `wanted` returns
/// false because the caller has left.
pub fn smallest(
    request: &Request,
    facts: &Facts,
    at: DateTime<Utc>,
    around: &Around<'_>,
    wanted: &dyn Fn() -> bool,
) -> Option<Remedy> {
    // The traces of the tried requests would cost time and are not read.
    let plain = Draft { explain: false, ..request.clone().into_draft() };
    let request = Request::new(plain).ok()?;
    let (step, left) = (Cell::new(1), Cell::new(u32::MAX));
    let search = Search { at, around, wanted, step, left };
    let asked = search.judged(request, facts.clone(), at, Vec::new())?;
    if asked.decision != Decision::Deny {
        return None;
    }
    search.one_more(&asked).or_else(|| sets::smallest(&search, &asked))
}

/// The limits and inputs of one search.
struct Search<'a> {
    /// The time of the denial.
    at: DateTime<Utc>,
    around: &'a Around<'a>,
    wanted: &'a dyn Fn() -> bool,
    /// The number of remaining tries for the current step.
    step: Cell<u32>,
    /// The number of remaining tries for all steps.
    left: Cell<u32>,
}

/// The question after some changes, and its decision.
struct State {
    request: Request,
    facts: Facts,
    changes: Vec<Change>,
    decision: Decision,
    reason: Reason,
}

impl Search<'_> {
    /// Decides the question; `None` if all tries are used up or the caller has left.
    fn judged(
        &self,
        request: Request,
        facts: Facts,
        at: DateTime<Utc>,
        changes: Vec<Change>,
    ) -> Option<State> {
        self.step.set(self.step.get().checked_sub(1)?);
        self.left.set(self.left.get().checked_sub(1)?);
        if !(self.wanted)() {
            return None;
        }
        let verdict = decide(&request, &facts, at);
        let (decision, reason) = (verdict.decision, verdict.reason_code);
        Some(State { request, facts, changes, decision, reason })
    }

    /// Decides the question after one more change. Also `None` if the result is not a valid
    /// question.
    fn after(&self, state: &State, change: &Change) -> Option<State> {
        if self.step.get().min(self.left.get()) == 0 {
            return None;
        }
        let changes = || [state.changes.as_slice(), std::slice::from_ref(change)].concat();
        if change.kind == Kind::Wait {
            let (request, mut facts) = (state.request.clone(), state.facts.clone());
            let at = wait::until(change)?;
            wait::begin_windows(&mut facts, self.at, at);
            return self.judged(request, facts, at, changes());
        }
        if !change.kind.is_said() {
            let mut facts = state.facts.clone();
            let mut gathered = Gathered::clone(&facts.gathered);
            granted::give(change, &state.request, &mut gathered);
            facts.gathered = gathered.into();
            return self.judged(state.request.clone(), facts, self.at, changes());
        }
        let mut draft = state.request.clone().into_draft();
        request_changes::apply(change, &mut draft);
        let request = Request::new(draft).ok()?;
        let same = request.keys() == state.request.keys();
        let looked_up = if same { None } else { (self.around)(&request) };
        let mut facts = match looked_up {
            None => state.facts.clone(),
            Some(mut facts) => {
                // The facts were looked up again, without the earlier changes by people.
                let mut gathered = Gathered::clone(&facts.gathered);
                for given in state.changes.iter().filter(|change| !change.kind.is_said()) {
                    granted::give(given, &request, &mut gathered);
                }
                facts.gathered = gathered.into();
                facts
            }
        };
        // The cited approval was for the original question.
        facts.approval = None;
        self.judged(request, facts, self.at, changes())
    }

    /// Returns the first single change that helps in addition to the earlier changes.
    fn one_more(&self, state: &State) -> Option<Remedy> {
        let found = STEPS.iter().find_map(|step| {
            self.step.set(MOST_TRIES);
            match step {
                Step::Last(search) => search(self, state),
                Step::Propose(propose) => {
                    let proposed = propose(self, state).into_iter();
                    let tried = proposed.take(MOST_TRIES as usize);
                    tried.filter_map(|change| self.after(state, &change)).find(State::helps)
                }
            }
        });
        found.map(State::remedy)
    }
}

impl State {
    fn helps(&self) -> bool {
        self.decision != Decision::Deny
    }

    fn remedy(self) -> Remedy {
        Remedy { changes: self.changes, decision: self.decision, reason_code: self.reason }
    }

    fn gathered(&self) -> &Gathered {
        &self.facts.gathered
    }

    /// Returns the number of table rows that the best authority passes; the maximum if rules deny.
    fn row(&self, at: DateTime<Utc>) -> usize {
        let choice = authority::choose(&Case::new(&self.request, &self.facts, at));
        choice.refusal.map_or(usize::MAX, |refusal| refusal.row)
    }

    /// Returns all bounds of the subject's authorities, with the ids of their holders.
    fn bounds(&self) -> Vec<(&str, &Bounds)> {
        let links = self.gathered().delegations.iter().flat_map(|chain| &chain.0);
        let of_links = links.map(|link| (link.line(), &link.bounds));
        let uses = self.gathered().uses.iter().filter(|uses| uses.row.allowed);
        let of_uses = uses.filter_map(|uses| match &uses.row.constraints {
            Constraints::Bounds(bounds) => Some((uses.row.id.as_str(), bounds.as_ref())),
            Constraints::Malformed(_) => None,
        });
        of_links.chain(of_uses).collect()
    }
}

/// Returns a change of this kind without a field, value and id.
fn change(kind: Kind, sentence: String) -> Change {
    Change { kind, member: None, value: None, id: None, sentence }
}

/// Returns the distinct texts in order, without `but`.
fn distinct<'t>(texts: impl IntoIterator<Item = &'t String>, but: Option<&str>) -> Vec<&'t str> {
    let mut seen = BTreeSet::new();
    let texts = texts.into_iter().map(String::as_str);
    texts.filter(|text| Some(*text) != but && seen.insert(*text)).collect()
}
