//! Decides the question again after each change, within the limits of the search.

use std::cell::Cell;

use chrono::{DateTime, Utc};

use super::{
    apply,
    change::{Change, Kind, Remedy},
};
use crate::{
    authority::{case::Case, choose},
    facts::{
        bounds::Bounds,
        gathered::{Facts, Gathered},
        records::Constraints,
    },
    levels::Decision,
    reason::Reason,
    request::draft::Request,
    verdict::decide::decide,
};

/// Returns the facts of a changed request, if available.
///
/// The original facts may lack the purpose or the delegation that the changed request names.
pub type Around<'a> = dyn Fn(&Request) -> Option<Facts> + 'a;

/// The limits and inputs of one search.
pub(super) struct Search<'a> {
    /// The time of the denial.
    pub(super) at: DateTime<Utc>,
    pub(super) around: &'a Around<'a>,
    pub(super) wanted: &'a dyn Fn() -> bool,
    /// The number of remaining tries for the current step.
    pub(super) step: Cell<u32>,
    /// The number of remaining tries for all steps.
    pub(super) left: Cell<u32>,
}

/// The question after some changes, and its decision.
pub(super) struct State {
    pub(super) request: Request,
    pub(super) facts: Facts,
    pub(super) changes: Vec<Change>,
    pub(super) decision: Decision,
    pub(super) reason: Reason,
}

impl Search<'_> {
    /// Decides the question; `None` if all tries are used up or the caller has left.
    pub(super) fn judged(
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
    pub(super) fn after(&self, state: &State, change: &Change) -> Option<State> {
        if self.step.get().min(self.left.get()) == 0 {
            return None;
        }
        let changes = || [state.changes.as_slice(), std::slice::from_ref(change)].concat();
        if change.kind == Kind::Wait {
            let (request, mut facts) = (state.request.clone(), state.facts.clone());
            let at = apply::until(change)?;
            apply::begin_windows(&mut facts, self.at, at);
            return self.judged(request, facts, at, changes());
        }
        if !change.kind.is_said() {
            let mut facts = state.facts.clone();
            let mut gathered = Gathered::clone(&facts.gathered);
            apply::give(change, &state.request, &mut gathered);
            facts.gathered = gathered.into();
            return self.judged(state.request.clone(), facts, self.at, changes());
        }
        let mut draft = state.request.clone().into_draft();
        apply::apply(change, &mut draft);
        let request = Request::new(draft).ok()?;
        let same = request.keys() == state.request.keys();
        let looked_up = if same { None } else { (self.around)(&request) };
        let mut facts = match looked_up {
            None => state.facts.clone(),
            Some(mut facts) => {
                // The facts were looked up again, without the earlier changes by people.
                let mut gathered = Gathered::clone(&facts.gathered);
                for given in state.changes.iter().filter(|change| !change.kind.is_said()) {
                    apply::give(given, &request, &mut gathered);
                }
                facts.gathered = gathered.into();
                facts
            }
        };
        // The cited approval was for the original question.
        facts.approval = None;
        self.judged(request, facts, self.at, changes())
    }
}

impl State {
    pub(super) fn helps(&self) -> bool {
        self.decision != Decision::Deny
    }

    pub(super) fn remedy(self) -> Remedy {
        Remedy { changes: self.changes, decision: self.decision, reason_code: self.reason }
    }

    pub(super) fn gathered(&self) -> &Gathered {
        &self.facts.gathered
    }

    /// Returns the number of table rows that the best authority passes; the maximum if rules deny.
    pub(super) fn row(&self, at: DateTime<Utc>) -> usize {
        let choice = choose::choose(&Case::new(&self.request, &self.facts, at));
        choice.refusal.map_or(usize::MAX, |refusal| refusal.row)
    }

    /// Returns all bounds of the subject's authorities, with the ids of their holders.
    pub(super) fn bounds(&self) -> Vec<(&str, &Bounds)> {
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
