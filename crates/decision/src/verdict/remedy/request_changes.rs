//! Changes of the request: purpose, jurisdiction, delegation, missing fields.

use super::{
    amount,
    apply::RISK_TIER,
    change::{Change, Kind, change, distinct},
    search::{Search, State},
};
use crate::{
    facts::records::Used,
    levels::RiskTier,
    reason::Reason,
    request::{amount::Amount, draft::Draft, jurisdiction as places},
};

pub(super) fn purpose(_: &Search<'_>, state: &State) -> Vec<Change> {
    let bound = state.bounds();
    let slugs = bound.iter().flat_map(|(_, bounds)| &bounds.purposes);
    let slugs = distinct(slugs, state.request.purpose.as_deref()).into_iter();
    let declared = slugs.map(|slug| {
        let named = change(Kind::Purpose, format!("declare the purpose `{slug}`"));
        Change { member: Some("purpose".to_owned()), value: Some(slug.to_owned()), ..named }
    });
    declared.collect()
}

pub(super) fn jurisdiction(_: &Search<'_>, state: &State) -> Vec<Change> {
    let bounds = state.bounds();
    let of_purpose = state.gathered().purpose.iter().flat_map(|purpose| &purpose.jurisdictions);
    let codes = bounds.iter().flat_map(|(_, bounds)| &bounds.jurisdictions).chain(of_purpose);
    let codes = codes.filter(|code| places::is_known(code));
    let codes = distinct(codes, state.request.jurisdiction()).into_iter();
    let named = codes.map(|code| {
        let named = change(Kind::Jurisdiction, format!("act in the jurisdiction {code}"));
        let member = Some("context.jurisdiction".to_owned());
        Change { member, value: Some(code.to_owned()), ..named }
    });
    named.collect()
}

/// Proposes to name another delegation of the subject, or none if it has other authority.
pub(super) fn delegation(search: &Search<'_>, state: &State) -> Vec<Change> {
    let named = state.request.delegation_id.as_deref();
    let unnamed = || Draft { delegation_id: None, ..state.request.clone().into_draft() };
    let all = match named {
        Some(_) => {
            let unnamed = unnamed().try_into().ok();
            unnamed.and_then(|request| (search.around)(&request)).map(|facts| facts.gathered)
        }
        None => None,
    };
    let chains = &all.as_deref().unwrap_or(state.gathered()).delegations;
    let leaves = chains.iter().filter_map(|chain| chain.0.first());
    let own = leaves.filter(|leaf| leaf.delegate_id == state.request.subject);
    let member = || Some("delegation_id".to_owned());
    let mut found: Vec<Change> = Vec::new();
    for id in distinct(own.map(|leaf| &leaf.id), named) {
        let (value, id) = (Some(id.to_string()), Some(id.to_string()));
        let sentence = format!("name the delegation `{}`", id.as_deref().unwrap_or_default());
        found.push(Change { member: member(), value, id, ..change(Kind::Delegation, sentence) });
    }
    if named.is_some() {
        let sentence = "leave out the delegation: the subject has other authority".to_owned();
        found.push(Change { member: member(), ..change(Kind::Delegation, sentence) });
    }
    found
}

/// Proposes fields that the tool or a bound requires and that are missing or have another value.
pub(super) fn context(search: &Search<'_>, state: &State) -> Vec<Change> {
    let mut found = required(state);
    let bounds = state.bounds();
    let each = bounds.iter();
    let currencies = each.clone().filter_map(|(_, bounds)| bounds.currency.as_ref());
    let resources = each.clone().flat_map(|(_, bounds)| &bounds.resource_ids);
    let workspaces = each.flat_map(|(_, bounds)| &bounds.workspace_ids);
    let request = &state.request;
    if request.amount().is_none() {
        let amounts = amount::marks(search, state).into_iter().map(Amount::from_ten_thousandths);
        found.extend(amounts.map(|amount| provided("amount", Some(&amount.to_string()))));
    }
    let currencies = distinct(currencies, request.currency()).into_iter();
    found.extend(currencies.map(|code| provided("currency", Some(code))));
    let resources = distinct(resources, request.resource_id.as_deref()).into_iter();
    found.extend(resources.map(|id| provided("resource_id", Some(id))));
    let workspaces = distinct(workspaces, request.workspace_id.as_deref()).into_iter();
    found.extend(workspaces.map(|id| provided("workspace_id", Some(id))));
    found
}

/// Proposes the fields that the tools require and the request lacks.
fn required(state: &State) -> Vec<Change> {
    if state.reason == Reason::ContextInvalid {
        return declared(state);
    }
    if state.reason != Reason::ContextIncomplete {
        return Vec::new();
    }
    let used = state.gathered().uses.iter().filter_map(|uses| match &uses.used {
        Used::Tool(tool) => Some(tool),
        _ => None,
    });
    let required = state.gathered().tool.iter().chain(used).flat_map(|tool| &tool.requires);
    let joined = state.gathered().joined_terms.iter().flat_map(|terms| terms.requires.keys());
    let required = required.chain(joined);
    let request = &state.request;
    let lacks = |name: &&String| match name.as_str() {
        "resource_id" => request.resource_id.is_none(),
        "workspace_id" => request.workspace_id.is_none(),
        name => !request.context.contains_key(name),
    };
    let lacking = distinct(required, None).into_iter().filter(lacks);
    lacking.map(|name| provided(name, None)).collect()
}

/// Proposes the fields that a declaration of the input requires and the request lacks.
fn declared(state: &State) -> Vec<Change> {
    let gathered = state.gathered();
    let by_tools = gathered.schemas.iter().flat_map(|schema| schema.required());
    let tenant = gathered.tenant.iter().filter_map(|tenant| tenant.context_schema.as_deref());
    let by_tenant = tenant.flat_map(|declared| declared.declared(&state.request.action));
    let by_tenant = by_tenant.filter(|(_, member)| member.required).map(|(name, _)| name);
    let lacking = by_tools.chain(by_tenant);
    let lacking = lacking.filter(|name| !state.request.context.contains_key(*name));
    distinct(lacking, None).into_iter().map(|name| provided(name, None)).collect()
}

/// Adds a missing field, or changes its value.
fn provided(name: &str, value: Option<&str>) -> Change {
    let is_id = matches!(name, "resource_id" | "workspace_id");
    let member = if is_id { name.to_owned() } else { format!("context.{name}") };
    let sentence = match value {
        Some(value) => format!("set `{member}` to {value}"),
        None => format!("set `{member}`, which the tool requires"),
    };
    let named = change(Kind::Context, sentence);
    Change { member: Some(member), value: value.map(str::to_owned), ..named }
}

/// Proposes the riskiest tier that passes: advice must not understate a risk.
pub(super) fn declaration(_: &Search<'_>, state: &State) -> Vec<Change> {
    let classified = state.request.action_risk_classification.unwrap_or_default();
    if classified.risk_tier.is_some() {
        return Vec::new();
    }
    let tiers = RiskTier::ALL.iter().rev().map(|tier| {
        let named = change(Kind::Declaration, format!("declare a risk tier of `{tier}` at most"));
        let value = Some(tier.word().to_owned());
        Change { member: Some(RISK_TIER.to_owned()), value, ..named }
    });
    tiers.collect()
}
