//! Attenuation: a child delegation may only narrow what its parent grants.
//!
//! The registry makes this comparison before it creates a child or narrows a delegation. `decide`
//! does not need the comparison, because it checks the request against every link of the chain.

use std::{fmt::Display, ops::Deref};

use super::{bounds::Bounds, hours::OffsetsOf, records::Delegation};
use crate::request::jurisdiction;

/// A field in which the child exceeds the parent, with the reason.
pub type Excess = (&'static str, String);

/// Returns everything in which `child` exceeds `parent`. Empty if the child is an attenuation.
///
/// `offsets_of` returns the offsets of time zones, for hours in different zones.
pub fn exceeds(parent: &Delegation, child: &Delegation, offsets_of: OffsetsOf<'_>) -> Vec<Excess> {
    let mut found = Vec::new();
    if !parent.can_delegate {
        found.push(("parent_id", "the parent's `can_delegate` is false".to_owned()));
    }
    if child.delegator_id != parent.delegate_id {
        found.push(("delegator_id", "must be the parent's delegate".to_owned()));
    }
    found.extend(wider(parent, child, "the parent's", offsets_of));
    found
}

/// Whether the parent's value covers the child's.
type Covers = fn(&str, &str) -> bool;

/// Returns everything in which `new` grants more than `old`. `/narrow` refuses such changes.
pub fn widens(old: &Delegation, new: &Delegation, offsets_of: OffsetsOf<'_>) -> Vec<Excess> {
    wider(old, new, "the present value", offsets_of)
}

/// Returns everything in which `new` grants more than `old`. In the problem texts, `measure` stands
/// for the value of `old`.
fn wider(
    old: &Delegation,
    new: &Delegation,
    measure: &str,
    offsets_of: OffsetsOf<'_>,
) -> Vec<Excess> {
    let mut found = Vec::new();
    for action in &new.actions {
        if !old.actions.iter().any(|own| action.is_within(own)) {
            found.push(("actions", format!("`{action}` is not within {measure}")));
        }
    }
    let same = |old: &str, new: &str| old == new;
    let texts: [(_, _, _, Covers); 2] = [
        ("purposes", &old.bounds.purposes, &new.bounds.purposes, same),
        (
            "jurisdictions",
            &old.bounds.jurisdictions,
            &new.bounds.jurisdictions,
            jurisdiction::covers,
        ),
    ];
    for (member, old, new, covers) in texts {
        found.extend(list_excess(member, old, new, covers, measure));
    }
    let ids = [
        ("resource_ids", &old.bounds.resource_ids, &new.bounds.resource_ids),
        ("workspace_ids", &old.bounds.workspace_ids, &new.bounds.workspace_ids),
    ];
    for (member, old, new) in ids {
        found.extend(list_excess(member, old, new, same, measure));
    }
    found.extend(bound_excess(&old.bounds, &new.bounds, measure, offsets_of));
    if !new.window.is_within(old.window) {
        let begins = |d: &Delegation| d.window.from;
        let early = begins(old).is_some_and(|from| begins(new).is_none_or(|own| own < from));
        let member = if early { "not_before" } else { "expires_at" };
        found.push((member, format!("reaches beyond {measure}")));
    }
    if new.can_delegate && !old.can_delegate {
        found.push(("can_delegate", format!("must be false, as {measure} is")));
    }
    found
}

fn list_excess<T: Deref<Target = str> + Display + PartialEq>(
    member: &'static str,
    old: &[T],
    new: &[T],
    covers: fn(&str, &str) -> bool,
    measure: &str,
) -> Option<Excess> {
    if old.is_empty() {
        return None;
    }
    if new.is_empty() {
        return Some((member, format!("is unbounded where {measure} is a list")));
    }
    // An unchanged value isn't wider than before, even if its meaning is unknown.
    let within = |old: &T, own: &T| old == own || covers(old, own);
    let extra = new.iter().find(|own| !old.iter().any(|old| within(old, own)))?;
    Some((member, format!("`{extra}` is not in {measure}")))
}

fn bound_excess(
    old: &Bounds,
    new: &Bounds,
    measure: &str,
    offsets_of: OffsetsOf<'_>,
) -> Vec<Excess> {
    let mut found = Vec::new();
    let mut judge = |member, bounded: bool, within: Option<bool>| match within {
        _ if !bounded => {}
        Some(true) => {}
        Some(false) => found.push((member, format!("is above {measure}"))),
        None => found.push((member, format!("is unbounded where {measure} is bounded"))),
    };
    let amount = old.max_amount.zip(new.max_amount).map(|(old, new)| new <= old);
    judge("max_amount", old.max_amount.is_some(), amount);
    let uses = old.max_uses.zip(new.max_uses);
    let uses = uses.map(|(o, n)| n.count <= o.count && n.window_seconds >= o.window_seconds);
    judge("max_uses", old.max_uses.is_some(), uses);
    let total = old.max_total_amount.zip(new.max_total_amount);
    let total = total.map(|(o, n)| n.amount <= o.amount && n.window_seconds >= o.window_seconds);
    judge("max_total_amount", old.max_total_amount.is_some(), total);
    let risk = old.max_risk_tier.zip(new.max_risk_tier).map(|(old, new)| new <= old);
    judge("max_risk_tier", old.max_risk_tier.is_some(), risk);
    let hours = old.hours.as_ref().zip(new.hours.as_ref());
    let hours = hours.map(|(old, new)| new.is_within(old, offsets_of));
    judge("hours", old.hours.is_some(), hours);
    if old.currency.is_some() && old.currency != new.currency {
        found.push(("currency", format!("must be {measure}")));
    }
    found
}
