//! Converts stored delegations for the core's comparison of parent and child.

use authority_model::{
    proto::delegation::Delegation,
    validate::{Violation, Violations},
    wire::Time,
};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use crate::flow::error::Error;
use authority_decision::{
    Bounds,
    bounds::{MaxTotalAmount, MaxUses},
    delegation,
    hours::Hours,
    levels::{DelegationState, RiskTier},
    moment::Window,
    records,
};
use authority_graph::time_zones;

/// Refuses a child that is wider than its parent in any field.
pub(crate) fn check_child(
    child: &Delegation,
    parent: &Delegation,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let offsets_of = |zone: &str| time_zones::offsets(zone, now);
    refuse(delegation::exceeds(&read(parent)?, &read(child)?, &offsets_of), child, parent)
}

/// Refuses a change after which the delegation would grant more than it did.
pub(crate) fn check_narrower(
    new: &Delegation,
    old: &Delegation,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let windows = |row: &Delegation| {
        let uses = row.max_uses.as_ref().map(|limit| limit.window_seconds);
        (uses, row.max_total_amount.as_ref().map(|limit| limit.window_seconds))
    };
    // Uses are counted in windows of a fixed length. With another length, counting would start
    // again at zero.
    let ((uses, total), (new_uses, new_total)) = (windows(old), windows(new));
    let mut found = Violations::default();
    for (member, was, is) in [("max_uses", uses, new_uses), ("max_total_amount", total, new_total)]
    {
        if was.is_some() && is.is_some() && was != is {
            let member = format!("delegation.{member}.window_seconds");
            found.add(&member, "cannot change; renew the delegation instead");
        }
    }
    Error::unless_clean(found)?;
    let offsets_of = |zone: &str| time_zones::offsets(zone, now);
    refuse(delegation::widens(&read(old)?, &read(new)?, &offsets_of), new, old)
        .map_err(with_renewal)
}

/// Adds to the error the operation that sets a later end.
fn with_renewal(error: Error) -> Error {
    let Error::Exceeds(mut list) = error else { return error };
    for fault in list.iter_mut().filter(|fault| fault.field == "delegation.expires_at") {
        fault.problem.push_str("; to extend it, renew the delegation");
    }
    Error::Exceeds(list)
}

fn refuse(
    excess: Vec<delegation::Excess>,
    part: &Delegation,
    whole: &Delegation,
) -> Result<(), Error> {
    let named = |(member, problem): (&'static str, String)| {
        let problem = with_value(problem, member, part, whole);
        Violation::new(format!("delegation.{member}"), problem)
    };
    let mut list: Vec<_> = excess.into_iter().map(named).collect();
    if whole.needs_standing_approval && !part.needs_standing_approval {
        list.push(named(("needs_standing_approval", "must be true: can't be dropped".to_owned())));
    }
    if list.is_empty() { Ok(()) } else { Err(Error::Exceeds(list)) }
}

/// Adds the limiting value to the problem. If the field was left out, also adds the remedy.
fn with_value(problem: String, member: &str, part: &Delegation, whole: &Delegation) -> String {
    let Some(value) = bound(whole, member) else { return problem };
    match bound(part, member) {
        Some(_) => format!("{problem}: {value}"),
        None => format!("{problem}: {value}; it is not inherited, so give this or less"),
    }
}

/// The longest value in a message, in characters.
const LONGEST_VALUE: usize = 300;

/// Returns a delegation's bound of this name as JSON, if it has one.
fn bound(of: &Delegation, member: &str) -> Option<String> {
    let list = |items: &[String]| (!items.is_empty()).then(|| json!(items));
    let text = |text: Option<&String>| text.map(|text| json!(text));
    let time = |time: Option<Time>| time.map(|time| json!(time.to_string()));
    let value = match member {
        "actions" => list(&of.actions),
        "purposes" => list(&of.purposes),
        "jurisdictions" => list(&of.jurisdictions),
        "resource_ids" => list(&of.resource_ids),
        "workspace_ids" => list(&of.workspace_ids),
        "max_amount" => text(of.max_amount.as_ref()),
        "currency" => text(of.currency.as_ref()),
        "max_risk_tier" => text(of.max_risk_tier.as_ref()),
        "max_uses" => of
            .max_uses
            .as_ref()
            .map(|limit| json!({"count": limit.count, "window_seconds": limit.window_seconds})),
        "max_total_amount" => of
            .max_total_amount
            .as_ref()
            .map(|limit| json!({"amount": limit.amount, "window_seconds": limit.window_seconds})),
        "hours" => hours_json(of),
        "not_before" => time(of.not_before),
        "expires_at" => time(of.expires_at),
        _ => None,
    }?;
    let value = value.to_string();
    match value.char_indices().nth(LONGEST_VALUE) {
        None => Some(value),
        Some((end, _)) => Some(format!("{}…", &value[..end])),
    }
}

/// Converts a stored delegation. It was validated when it was written. An error names a field that
/// can't be read.
fn read(stored: &Delegation) -> Result<records::Delegation, Error> {
    let mut found = Violations::default();
    let mut actions = Vec::new();
    for text in &stored.actions {
        match text.parse() {
            Ok(pattern) => actions.push(pattern),
            Err(problem) => found.add("delegation.actions", format!("`{text}` {problem}")),
        }
    }
    let bounds = read_bounds(stored, &mut found);
    let moment = |time: Option<Time>| time.and_then(Time::moment);
    Error::unless_clean(found)?;
    Ok(records::Delegation {
        id: stored.id.as_str().into(),
        version: 0,
        parent_id: stored.parent_id.as_deref().map(Into::into),
        delegator_id: stored.delegator_id.as_deref().unwrap_or_default().into(),
        delegate_id: stored.delegate_id.as_str().into(),
        state: DelegationState::from_word(&stored.state).unwrap_or(DelegationState::Revoked),
        window: Window { from: moment(stored.not_before), until: moment(stored.expires_at) },
        actions,
        bounds,
        can_delegate: stored.can_delegate,
        needs_standing_approval: stored.needs_standing_approval,
        standing: Vec::new(),
        line_id: None,
    })
}

fn read_bounds(stored: &Delegation, found: &mut Violations) -> Bounds {
    let mut amount = |field: &str, text: &str| {
        let amount = text.parse();
        amount
            .map_err(|problem| found.add(&format!("delegation.{field}"), format!("{problem}")))
            .ok()
    };
    let total = stored.max_total_amount.as_ref();
    let bounds = Bounds {
        max_amount: stored.max_amount.as_deref().and_then(|text| amount("max_amount", text)),
        max_total_amount: total.and_then(|limit| {
            Some(MaxTotalAmount {
                amount: amount("max_total_amount.amount", &limit.amount)?,
                window_seconds: limit.window_seconds.cast_unsigned(),
            })
        }),
        max_uses: stored.max_uses.as_ref().map(|limit| MaxUses {
            count: limit.count.cast_unsigned(),
            window_seconds: limit.window_seconds.cast_unsigned(),
        }),
        currency: stored.currency.clone(),
        jurisdictions: stored.jurisdictions.clone(),
        hours: hours(stored),
        resource_ids: stored.resource_ids.iter().map(|id| id.as_str().into()).collect(),
        workspace_ids: stored.workspace_ids.iter().map(|id| id.as_str().into()).collect(),
        purposes: stored.purposes.clone(),
        max_risk_tier: stored.max_risk_tier.as_deref().and_then(RiskTier::from_word),
    };
    if stored.hours.is_some() && bounds.hours.is_none() {
        found.add("delegation.hours", "is not a valid set of hours");
    }
    bounds
}

/// Reports hours that can't be read, have an unknown zone, or do not have exactly one clock.
pub(crate) fn validate_hours(of: &Delegation, found: &mut Violations) {
    let Some(written) = &of.hours else { return };
    let problem = match (&written.time_zone, &written.utc_offset) {
        (Some(_), Some(_)) => "give `time_zone` or `utc_offset`, not both",
        (None, None) => "needs `time_zone` or `utc_offset`, such as `Europe/Berlin` or `+01:00`",
        _ if written.from == written.to => "`from` and `to` must differ",
        _ if hours(of).is_none() => {
            "needs a clock, `from` and `to`, such as `+01:00`, `08:00` and `17:30`"
        }
        (Some(name), None) => {
            if let Some(fault) = time_zones::fault(name) {
                found.add("hours.time_zone", fault);
            }
            return;
        }
        (None, Some(_)) => return,
    };
    found.add("hours", problem);
}

/// Returns the hours as the decision core reads them. `None` if there are none or they can't be
/// read.
pub(crate) fn hours(of: &Delegation) -> Option<Hours> {
    serde_json::from_value(hours_json(of)?).ok()
}

fn hours_json(of: &Delegation) -> Option<Value> {
    let hours = of.hours.as_ref()?;
    let clocks = [("time_zone", &hours.time_zone), ("utc_offset", &hours.utc_offset)];
    let given = clocks.into_iter().filter_map(|(name, clock)| Some((name, json!(clock.as_ref()?))));
    let mut members: Map<String, Value> = given.map(|(name, clock)| (name.into(), clock)).collect();
    let rest = [("days", json!(hours.days)), ("from", json!(hours.from)), ("to", json!(hours.to))];
    members.extend(rest.map(|(name, value)| (name.to_owned(), value)));
    Some(Value::Object(members))
}

#[cfg(test)]
mod tests {
    use authority_model::proto::delegation::{AmountLimit, UseLimit};

    use super::*;

    fn parent() -> Delegation {
        Delegation {
            actions: vec!["payment.*".into()],
            max_amount: Some("500".into()),
            currency: Some("EUR".into()),
            max_total_amount: Some(AmountLimit { amount: "5000".into(), window_seconds: 3600 }),
            max_uses: Some(UseLimit { count: 10, window_seconds: 60 }),
            needs_standing_approval: true,
            ..Delegation::default()
        }
    }

    fn members(change: impl FnOnce(&mut Delegation)) -> Vec<String> {
        let mut part = parent();
        change(&mut part);
        match check_narrower(&part, &parent(), DateTime::UNIX_EPOCH) {
            Err(Error::Exceeds(list)) => list.into_iter().map(|fault| fault.field).collect(),
            other => {
                other.unwrap();
                Vec::new()
            }
        }
    }

    /// The problems of a child of [`parent`] after this change.
    fn problem_without(change: impl FnOnce(&mut Delegation)) -> Vec<String> {
        let (mut child, mut parent) = (parent(), parent());
        parent.can_delegate = true;
        parent.purposes = vec!["settlement".into()];
        child.purposes.clone_from(&parent.purposes);
        change(&mut child);
        let child = Delegation { delegator_id: Some(String::new()), ..child };
        match check_child(&child, &parent, DateTime::UNIX_EPOCH) {
            Err(Error::Exceeds(list)) => list.into_iter().map(|fault| fault.problem).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_value_of_the_parent_is_the_remedy() {
        assert_eq!(
            problem_without(|child| child.purposes.clear()),
            ["is unbounded where the parent's is a list: [\"settlement\"]; it is not inherited, \
              so give this or less"]
        );
        assert_eq!(
            problem_without(|child| child.max_uses = None),
            ["is unbounded where the parent's is bounded: {\"count\":10,\"window_seconds\":60}; \
              it is not inherited, so give this or less"]
        );
        assert_eq!(
            problem_without(|child| child.max_amount = Some("501".into())),
            ["is above the parent's: \"500\""]
        );
    }

    #[test]
    fn what_is_narrowed_is_measured_by_itself() {
        let mut part = parent();
        part.max_amount = Some("501".into());
        let found = check_narrower(&part, &parent(), DateTime::UNIX_EPOCH);
        let Err(Error::Exceeds(list)) = found else { panic!() };
        assert_eq!(list[0].problem, "is above the present value: \"500\"");
    }

    #[test]
    fn each_wider_member_is_named() {
        assert!(members(|_| {}).is_empty());
        assert!(members(|part| part.max_amount = Some("499.99".into())).is_empty());
        assert_eq!(members(|part| part.actions = vec!["*".into()]), ["delegation.actions"]);
        assert_eq!(members(|part| part.max_amount = None), ["delegation.max_amount"]);
        assert_eq!(members(|part| part.max_uses = None), ["delegation.max_uses"]);
        assert_eq!(
            members(|part| part.needs_standing_approval = false),
            ["delegation.needs_standing_approval"]
        );
    }
}
