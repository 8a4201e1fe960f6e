//! What the asker may say otherwise: purpose, amount, jurisdiction, delegation, missing members.

use serde_json::Value;

use super::{Kind, Remedy, Search, distinct, remedy};
use crate::decision::{
    amount::Amount,
    facts::Used,
    levels::RiskTier,
    limits,
    reason::Reason,
    request::{ActionRiskClassification, Draft},
    verdict::Verdict,
};

/// One ten-thousandth; what amounts are counted in.
const PART: i64 = 1;
/// From here on a double cannot say every ten-thousandth, so only whole amounts are tried.
const COARSE: i64 = 1 << 52;
const WHOLE: i64 = 10_000;
/// Bounds that are tried as amounts; halving needs the other tries.
const MOST_BOUNDS: usize = 32;
/// Stands for a value that only the asker knows.
const SOMETHING: &str = "x";

pub(super) fn purpose(search: &Search<'_>) -> Option<Remedy> {
    let bound = search.bounds();
    let slugs = bound.iter().flat_map(|(_, bounds)| &bounds.purposes);
    let slugs = distinct(slugs, search.request.purpose.as_deref());
    slugs.into_iter().find_map(|slug| {
        let verdict = search.say(|draft| draft.purpose = Some(slug.to_owned()))?;
        let found = remedy(Kind::Purpose, format!("declare the purpose `{slug}`"), &verdict);
        Some(Remedy { member: Some("purpose".to_owned()), value: Some(slug.to_owned()), ..found })
    })
}

/// The largest amount that passes: it does, and what lies just above it does not.
pub(super) fn amount(search: &Search<'_>) -> Option<Remedy> {
    let asked = search.request.amount()?.ten_thousandths();
    let step = if asked < COARSE { PART } else { WHOLE };
    let pass = |units: i64| search.say(|draft| set_amount(draft, units));
    let mut refused = asked;
    let mut passing: Option<(i64, Verdict)> = None;
    for mark in limits_below(search, asked, step) {
        passing = pass(mark).map(|verdict| (mark, verdict));
        if passing.is_some() {
            break;
        }
        refused = mark;
    }
    let (mut largest, mut verdict) = passing?;
    // Mostly it is the bound itself; else a policy draws the line, and halving finds it.
    let mut next = largest + step;
    while refused - largest > step {
        match pass(next) {
            Some(better) => (largest, verdict) = (next, better),
            None => refused = next,
        }
        next = largest + (((refused - largest) / 2) / step * step).max(step);
    }
    let value = Amount::from_ten_thousandths(largest).to_string();
    let found = remedy(Kind::Amount, format!("ask for {value} at most"), &verdict);
    Some(Remedy { member: Some("context.amount".to_owned()), value: Some(value), ..found })
}

/// Where the bounds draw lines below the amount asked for, the highest first; then the least amount.
fn limits_below(search: &Search<'_>, asked: i64, step: i64) -> Vec<i64> {
    let below = |mark: &i64| (step..asked).contains(mark);
    let bounds = amounts(search).into_iter().map(|mark| mark - mark % step);
    bounds.filter(below).take(MOST_BOUNDS).chain([step].into_iter().filter(below)).collect()
}

/// The most that each bound leaves, the highest first.
fn amounts(search: &Search<'_>) -> Vec<i64> {
    let each = search.bounds().into_iter().flat_map(|(holder, bounds)| {
        let left = limits::left(search.facts, holder, bounds, search.at);
        [bounds.max_amount.map(Amount::ten_thousandths), left]
    });
    let mut marks: Vec<i64> = each.flatten().collect();
    marks.sort_unstable_by(|one, other| other.cmp(one));
    marks.dedup();
    marks
}

fn set_amount(draft: &mut Draft, units: i64) {
    let amount = Amount::from_ten_thousandths(units).to_number();
    draft.context.insert("amount".to_owned(), Value::Number(amount));
}

pub(super) fn jurisdiction(search: &Search<'_>) -> Option<Remedy> {
    let bounds = search.bounds();
    let of_purpose = search.gathered().purpose.iter().flat_map(|purpose| &purpose.jurisdictions);
    let codes = bounds.iter().flat_map(|(_, bounds)| &bounds.jurisdictions).chain(of_purpose);
    distinct(codes, search.request.jurisdiction()).into_iter().find_map(|code| {
        let verdict = search.say(|draft| set(draft, "jurisdiction", code.into()))?;
        let found = remedy(Kind::Jurisdiction, format!("act in the jurisdiction {code}"), &verdict);
        Some(Remedy {
            member: Some("context.jurisdiction".to_owned()),
            value: Some(code.to_owned()),
            ..found
        })
    })
}

/// Another delegation of the subject named; none named at all, where it has authority beside them.
pub(super) fn delegation(search: &Search<'_>) -> Option<Remedy> {
    let named = search.request.delegation_id.as_deref();
    let unnamed = || Draft { delegation_id: None, ..search.request.clone().into_draft() };
    let all = match named {
        Some(_) => (search.around)(&unnamed().try_into().ok()?).map(|facts| facts.gathered),
        None => None,
    };
    let chains = &all.as_deref().unwrap_or(search.gathered()).delegations;
    let leaves = chains.iter().filter_map(|chain| chain.0.first());
    let own = leaves.filter(|leaf| leaf.delegate_id == search.request.subject);
    let ids = distinct(own.map(|leaf| &leaf.id), named);
    let other = ids.into_iter().find_map(|id| {
        let verdict = search.say(|draft| draft.delegation_id = Some(id.to_owned()))?;
        let found = remedy(Kind::Delegation, format!("name the delegation `{id}`"), &verdict);
        Some(Remedy { value: Some(id.to_owned()), id: Some(id.to_owned()), ..found })
    });
    let none = || {
        named?;
        let verdict = search.say(|draft| draft.delegation_id = None)?;
        let sentence = "name no delegation: the subject has other authority".to_owned();
        Some(remedy(Kind::Delegation, sentence, &verdict))
    };
    Some(Remedy { member: Some("delegation_id".to_owned()), ..other.or_else(none)? })
}

/// A member that the tool or a bound asks for, and that the request lacks or says otherwise.
pub(super) fn context(search: &Search<'_>) -> Option<Remedy> {
    required(search).or_else(|| {
        let bounds = search.bounds();
        let each = bounds.iter();
        let currencies = each.clone().filter_map(|(_, bounds)| bounds.currency.as_ref());
        let resources = each.clone().flat_map(|(_, bounds)| &bounds.resource_ids);
        let workspaces = each.flat_map(|(_, bounds)| &bounds.workspace_ids);
        let request = &search.request;
        let one_of = |name: &str, values: Vec<&str>| {
            values.into_iter().find_map(|value| provided(search, name, Some(value)))
        };
        let amounts: Vec<_> = match request.amount() {
            Some(_) => Vec::new(),
            None => amounts(search).into_iter().map(Amount::from_ten_thousandths).collect(),
        };
        let amounts: Vec<String> = amounts.iter().map(ToString::to_string).collect();
        one_of("amount", amounts.iter().map(String::as_str).collect())
            .or_else(|| one_of("currency", distinct(currencies, request.currency())))
            .or_else(|| one_of("resource_id", distinct(resources, request.resource_id.as_deref())))
            .or_else(|| {
                one_of("workspace_id", distinct(workspaces, request.workspace_id.as_deref()))
            })
    })
}

/// What the tools concerned require and the request lacks.
fn required(search: &Search<'_>) -> Option<Remedy> {
    if search.reason != Reason::ContextIncomplete {
        return None;
    }
    let used = search.gathered().uses.iter().filter_map(|uses| match &uses.used {
        Used::Tool(tool) => Some(tool),
        _ => None,
    });
    let required = search.gathered().tool.iter().chain(used).flat_map(|tool| &tool.requires);
    let request = &search.request;
    distinct(required, None).into_iter().find_map(|name| match name {
        "resource_id" | "workspace_id" => {
            let id_is_there = match name {
                "resource_id" => request.resource_id.is_some(),
                _ => request.workspace_id.is_some(),
            };
            if id_is_there { None } else { provided(search, name, None) }
        }
        _ if request.context.contains_key(name) => None,
        _ => provided(search, name, None),
    })
}

/// The request with a member that it lacks, or with another value of it; where no value is given it
/// is one that only the asker knows.
fn provided(search: &Search<'_>, name: &str, value: Option<&str>) -> Option<Remedy> {
    let is_id = matches!(name, "resource_id" | "workspace_id");
    let text = || value.unwrap_or(SOMETHING).to_owned();
    let json = || match (name, value) {
        ("amount", Some(value)) => {
            value.parse::<Amount>().map_or(Value::Null, |amount| Value::Number(amount.to_number()))
        }
        ("amount", None) => 1.into(),
        // Codes of a kind that no rule can be about: it is only asked that there is one.
        ("currency", None) => "XXX".into(),
        ("jurisdiction", None) => "ZZ".into(),
        _ => text().into(),
    };
    let verdict = search.say(|draft| match name {
        "resource_id" => draft.resource_id = Some(text()),
        "workspace_id" => draft.workspace_id = Some(text()),
        _ => set(draft, name, json()),
    })?;
    let named = if is_id { name.to_owned() } else { format!("context.{name}") };
    let sentence = match value {
        Some(value) => format!("say `{named}`: {value}"),
        None => format!("say `{named}`, which the tool requires"),
    };
    let found = remedy(Kind::Context, sentence, &verdict);
    Some(Remedy { member: Some(named), value: value.map(str::to_owned), ..found })
}

/// The riskiest tier that passes, so that nobody is told to play a risk down.
pub(super) fn declaration(search: &Search<'_>) -> Option<Remedy> {
    let classified = search.request.action_risk_classification.unwrap_or_default();
    if classified.risk_tier.is_some() {
        return None;
    }
    RiskTier::ALL.iter().rev().find_map(|tier| {
        let risk_tier = Some(*tier);
        let classified = ActionRiskClassification { risk_tier, ..classified };
        let verdict = search.say(|draft| draft.action_risk_classification = Some(classified))?;
        let sentence = format!("declare the risk tier, `{tier}` at most");
        let found = remedy(Kind::Declaration, sentence, &verdict);
        let named = Some("action_risk_classification.risk_tier".to_owned());
        Some(Remedy { member: named, value: Some(tier.word().to_owned()), ..found })
    })
}

fn set(draft: &mut Draft, name: &str, value: Value) {
    draft.context.insert(name.to_owned(), value);
}
