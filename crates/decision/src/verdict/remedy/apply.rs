//! Applies changes: to the request, to the records, and to the counters after a wait.

use std::sync::Arc;

use authority_ids::EntityRef;
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::change::{Change, Kind};
use crate::{
    authority::limits::counters_needed,
    facts::{
        gathered::{Facts, Gathered},
        records::{ActsIn, Constraints, Delegation, Grant, Used, Uses, UsesRow},
    },
    levels::{AccessLevel, DelegationState, RiskTier},
    moment::Window,
    pattern::Pattern,
    request::{
        amount::Amount,
        draft::{ActionRiskClassification, Draft, Request},
    },
};

pub(super) const ACCESS: &str = "granted_access_to";
pub(super) const ACTS_IN: &str = "acts_in";
pub(super) const USES: &str = "uses";
pub(super) const ACTION: &str = "action";
pub(super) const ACTIONS: &str = "actions";

/// A placeholder for a value that only the requester knows.
const SOMETHING: &str = "x";
pub(super) const RISK_TIER: &str = "action_risk_classification.risk_tier";

/// Applies the change to the request.
pub(super) fn apply(change: &Change, draft: &mut Draft) {
    let value = change.value.clone();
    let something = || change.value.clone().unwrap_or_else(|| SOMETHING.to_owned());
    match change.member.as_deref().unwrap_or_default() {
        "purpose" => draft.purpose = value,
        "delegation_id" => draft.delegation_id = value.map(Into::into),
        "resource_id" => draft.resource_id = Some(something().into()),
        "workspace_id" => draft.workspace_id = Some(something().into()),
        RISK_TIER => {
            let classified = draft.action_risk_classification.unwrap_or_default();
            let risk_tier = value.as_deref().and_then(RiskTier::from_word);
            let classified = ActionRiskClassification { risk_tier, ..classified };
            draft.action_risk_classification = Some(classified);
        }
        member => {
            let name = member.strip_prefix("context.").unwrap_or(member).to_owned();
            let json = json(&name, change.value.as_deref());
            draft.context.insert(name, json);
        }
    }
}

/// Returns the value of a context field, or a placeholder if only the requester knows it.
fn json(name: &str, value: Option<&str>) -> Value {
    match (name, value) {
        ("amount", Some(value)) => {
            value.parse::<Amount>().map_or(Value::Null, |amount| Value::Number(amount.to_number()))
        }
        ("amount", None) => 1.into(),
        // Placeholders that rules hardly ever use: the code for no currency, and an uninhabited
        // island. Only the presence of a value matters.
        ("currency", None) => "XXX".into(),
        ("jurisdiction", None) => "BV".into(),
        (_, value) => value.unwrap_or(SOMETHING).into(),
    }
}

/// Applies a change by people to the records.
pub(super) fn give(change: &Change, request: &Request, gathered: &mut Gathered) {
    let id = change.id.as_deref().unwrap_or_default();
    let value = change.value.clone().unwrap_or_default();
    let (own, window) = (EntityRef::default(), Window::default());
    match (change.kind, change.member.as_deref().unwrap_or_default()) {
        (Kind::Grant, ACCESS) => gathered.grants.push(Arc::new(Grant {
            id: own,
            resource_id: id.into(),
            grantee_id: request.subject.to_string(),
            grantee_kind: "principal".to_owned(),
            access_level: AccessLevel::from_word(&value).unwrap_or(AccessLevel::Read),
        })),
        (Kind::Grant, ACTS_IN) => {
            let workspace_id = id.into();
            let row = ActsIn { id: own, workspace_id, window, allowed_actions: None };
            gathered.acts_in.push(row.into());
        }
        (Kind::Grant, ACTION) => {
            let constraints = Constraints::Bounds(Box::default());
            let row = UsesRow { id: own, allowed: true, window, constraints };
            let used = Used::Action(Pattern::Exact(value));
            gathered.uses.push(Uses { row: row.into(), used });
        }
        (Kind::Grant, _) => {
            edit(gathered, id, |link| link.actions.push(Pattern::Exact(value.clone())));
        }
        (Kind::Link, USES) => {
            for uses in gathered.uses.iter_mut().filter(|uses| uses.row.id == id) {
                Arc::make_mut(&mut uses.row).window = window;
            }
        }
        (Kind::Link, ACTS_IN) => {
            for row in gathered.acts_in.iter_mut().filter(|row| row.id == id) {
                Arc::make_mut(row).window = window;
            }
        }
        (Kind::Link, _) => edit(gathered, id, |link| {
            (link.state, link.window) = (DelegationState::Active, window);
        }),
        (Kind::Principal, _) => {
            let known = gathered.subject.iter_mut().chain(&mut gathered.principals);
            for principal in known.filter(|principal| principal.id == id) {
                Arc::make_mut(principal).active = true;
            }
        }
        (Kind::Stop, _) => gathered.stop_signals.retain(|signal| signal.id != id),
        (Kind::Quarantine, _) => gathered.quarantines.retain(|one| one.id != id),
        (Kind::Denial, _) => {
            gathered.uses.retain(|uses| uses.row.allowed || uses.row.id != id);
            gathered.chain_denials.retain(|row| row.denial.row.id != id);
        }
        // A change of the request does not change the records.
        _ => {}
    }
}

/// Changes a link in every chain.
fn edit(gathered: &mut Gathered, id: &str, change: impl Fn(&mut Delegation)) {
    let links = gathered.delegations.iter_mut().flat_map(|chain| &mut chain.0);
    links.filter(|link| link.id == id).for_each(|link| change(Arc::make_mut(link)));
}

/// Returns the end of the wait.
pub(super) fn until(change: &Change) -> Option<DateTime<Utc>> {
    let parsed = DateTime::parse_from_rfc3339(change.value.as_deref()?).ok()?;
    Some(parsed.to_utc())
}

/// Sets the counters of windows that begin after the denial to zero.
pub(super) fn begin_windows(facts: &mut Facts, denied_at: DateTime<Utc>, at: DateTime<Utc>) {
    for key in counters_needed(&facts.gathered, at) {
        if key.window_start > denied_at.timestamp() {
            facts.spent.0.entry(key).or_default();
        }
    }
}
