//! Checks the bounds of an authority: amounts, places, hours, counters, risk.
//!
//! A bound does not hold if the request lacks its field, or if its counter is unknown.

use authority_ids::EntityRef;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{candidate::Candidate, case::Case};
use crate::{
    facts::{
        bounds::Bounds,
        gathered::{CounterKey, Counts, Facts, Gathered},
        hours::Hours,
        records::Constraints,
    },
    reason::Reason,
    request::{amount::Amount, draft::Request},
};

/// Adds `add` to the counter, if the sum does not exceed `limit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterClaim {
    pub key: CounterKey,
    pub add: i64,
    pub limit: i64,
}

/// Checks one row of the table: every bound of every link and of the `uses` row must hold.
///
/// An amount below zero is refused regardless of the bounds.
pub(crate) fn hold(case: &Case<'_>, candidate: &Candidate<'_>) -> Result<(), Reason> {
    let bounds = candidate.bounds().ok_or(Reason::ConstraintExceeded)?;
    if case.request.amount().is_some_and(|amount| amount < Amount::ZERO) {
        return Err(Reason::ConstraintExceeded);
    }
    if !bounds.iter().all(|(holder, bounds)| within(case, holder, bounds)) {
        return Err(Reason::ConstraintExceeded);
    }
    let risk = bounds.iter().all(|(_, bounds)| risk_holds(candidate, bounds));
    if risk { Ok(()) } else { Err(Reason::RiskExceedsDelegation) }
}

/// Whether the action's risk tier is declared and not above the ceiling, if there is one.
pub(crate) fn risk_holds(candidate: &Candidate<'_>, bounds: &Bounds) -> bool {
    let tier = candidate.declared.known_tier;
    bounds.max_risk_tier.is_none_or(|ceiling| tier.is_some_and(|tier| tier <= ceiling))
}

/// Whether each of these bounds holds, except the bounds on risk, place and purpose.
pub(crate) fn within(case: &Case<'_>, holder: &str, bounds: &Bounds) -> bool {
    let request = case.request;
    let listed = |list: &[EntityRef], own: Option<&EntityRef>| {
        list.is_empty() || own.is_some_and(|own| list.contains(own))
    };
    let currency = bounds.currency.as_deref();
    bounds.max_amount.is_none_or(|max| counted_amount(case).is_some_and(|own| own <= max))
        && currency.is_none_or(|bound| request.currency() == Some(bound))
        && reaches(&bounds.resource_ids, request)
        && listed(&bounds.workspace_ids, request.workspace_id.as_ref())
        && bounds.hours.as_ref().is_none_or(|hours| hours.hold(case.asked_at, &case.facts.zones))
        && counters(case, holder, bounds).all(|claim| claim.is_some_and(|c| has_room(case, &c)))
}

/// Returns when the first hours of the authority end, if that is before `limit`.
pub(crate) fn hours_end(
    case: &Case<'_>,
    candidate: &Candidate<'_>,
    limit: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let end = |hours: &Hours| hours.end(case.asked_at, limit, &case.facts.zones);
    candidate.hours().filter_map(end).min()
}

/// Whether the list is empty, or the request names a resource or project and only listed ones.
fn reaches(list: &[EntityRef], request: &Request) -> bool {
    let mut named = request.resource_id.iter().chain(&request.project_id).peekable();
    list.is_empty() || (named.peek().is_some() && named.all(|id| list.contains(id)))
}

/// Returns the amount if it can be counted. Counting a negative amount would lower the counter.
fn counted_amount(case: &Case<'_>) -> Option<Amount> {
    case.request.amount().filter(|amount| *amount >= Amount::ZERO)
}

fn has_room(case: &Case<'_>, claim: &CounterClaim) -> bool {
    let used = case.facts.spent.0.get(&claim.key).copied();
    let after = used.and_then(|used| used.checked_add(claim.add));
    after.is_some_and(|after| after <= claim.limit)
}

/// Returns the counter changes of an allow under these bounds; `None` for an uncountable change.
fn counters(
    case: &Case<'_>,
    holder: &str,
    bounds: &Bounds,
) -> impl Iterator<Item = Option<CounterClaim>> {
    let uses = bounds.max_uses.map(|max| {
        let key = CounterKey::at(holder, Counts::Uses, max.window_seconds, case.at)?;
        Some(CounterClaim { key, add: 1, limit: max.count.into() })
    });
    let total = bounds.max_total_amount.map(|max| {
        let key = CounterKey::at(holder, Counts::Amount, max.window_seconds, case.at)?;
        let add = counted_amount(case)?.ten_thousandths();
        Some(CounterClaim { key, add, limit: max.amount.ten_thousandths() })
    });
    uses.into_iter().chain(total)
}

/// Returns the counters that an allow under this candidate spends.
pub(crate) fn claims(case: &Case<'_>, candidate: &Candidate<'_>) -> Vec<CounterClaim> {
    let bounds = candidate.bounds().unwrap_or_default();
    let each =
        |(holder, bounds): &(&str, &Bounds)| counters(case, holder, bounds).flatten().collect();
    bounds.iter().flat_map(|pair| -> Vec<CounterClaim> { each(pair) }).collect()
}

/// Returns the unused part of `max_total_amount` in the current window, in ten-thousandths, if its
/// counter is known.
pub(crate) fn left(facts: &Facts, holder: &str, bounds: &Bounds, at: DateTime<Utc>) -> Option<i64> {
    let max = bounds.max_total_amount?;
    let key = CounterKey::at(holder, Counts::Amount, max.window_seconds, at)?;
    max.amount.ten_thousandths().checked_sub(*facts.spent.0.get(&key)?)
}

/// Returns every counter that a decision on these facts may read.
///
/// Before the decision, set the value of each counter in [`crate::facts::Spent`]; use 0 if there is
/// no stored value.
pub fn counters_needed<P>(gathered: &Gathered<P>, at: DateTime<Utc>) -> Vec<CounterKey> {
    let links = gathered.delegations.iter().flat_map(|chain| &chain.0);
    let of_links = links.map(|link| (link.line(), &link.bounds));
    let of_uses = gathered.uses.iter().filter_map(|uses| match &uses.row.constraints {
        Constraints::Bounds(bounds) => Some((uses.row.id.as_str(), bounds.as_ref())),
        Constraints::Malformed(_) => None,
    });
    let mut keys: Vec<CounterKey> = of_links
        .chain(of_uses)
        .flat_map(|(holder, bounds)| {
            let uses = bounds.max_uses.map(|max| (Counts::Uses, max.window_seconds));
            let total = bounds.max_total_amount.map(|max| (Counts::Amount, max.window_seconds));
            let both = uses.into_iter().chain(total);
            both.filter_map(move |(counts, window)| CounterKey::at(holder, counts, window, at))
        })
        .collect();
    keys.sort();
    keys.dedup();
    keys
}
