//! Finds one change, or else the smallest set of up to three changes, that would turn a denial into
//! a permit or a hold.
//!
//! A remedy is only an explanation: decisions do not depend on it. The search tries changes in the
//! order of [`steps::STEPS`], decides again after each, and returns the first that helps. First
//! come the changes that the requester can make, then the grants that people must make, and last
//! the prohibitions that people must lift:
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
//! bounded: [`steps::MOST_TRIES`] decisions for each step, [`sets::MOST_FOR_SETS`] for each size of
//! set. A change may therefore exist even if none is returned. Policies and reality are never
//! changed: they are intended, and the trace names them.

mod amount;
mod apply;
mod change;
mod granted;
mod request_changes;
mod search;
mod sets;
mod steps;
mod wait;

use std::cell::Cell;

use chrono::{DateTime, Utc};

use self::search::Search;
pub use self::{
    change::{Change, Kind, Remedy},
    search::Around,
};
use crate::{
    facts::gathered::Facts,
    levels::Decision,
    request::draft::{Draft, Request},
};

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
    steps::one_more(&search, &asked).or_else(|| sets::smallest(&search, &asked))
}
