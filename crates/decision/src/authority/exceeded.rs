//! Describes each bound that a request exceeds, with the requested value.
//!
//! This module does not decide. Each bound is checked separately by the deciding rule.

use std::borrow::Borrow;

use authority_ids::PrincipalRef;

use super::{
    candidate::{Candidate, Source},
    case::Case,
    choose, input_check, limits,
    trace_step::ExceededBound,
};
use crate::{
    facts::{bounds::Bounds, budget::Budget, chain},
    levels::RiskTier,
    moment,
    reason::Reason,
    request::{amount::Amount, jurisdiction},
};

/// The maximum number of items of a long list to show.
const NAMED: usize = 8;

/// A bound that is checked separately.
struct Bound {
    name: &'static str,
    alone: fn(&Bounds) -> Bounds,
    /// Formats the bound as set.
    limit: fn(&Bounds) -> String,
    /// Formats the request's value.
    asked: fn(&Case<'_>) -> Option<String>,
}

const BOUNDS: [Bound; 7] = [
    Bound {
        name: "max_amount",
        alone: |all| Bounds { max_amount: all.max_amount, ..Bounds::default() },
        limit: |all| all.max_amount.map(Amount::to_money).unwrap_or_default(),
        asked: asked_amount,
    },
    Bound {
        name: "currency",
        alone: |all| Bounds { currency: all.currency.clone(), ..Bounds::default() },
        limit: |all| all.currency.clone().unwrap_or_default(),
        asked: |case| case.request.currency().map(str::to_owned),
    },
    Bound {
        name: "resource_ids",
        alone: |all| Bounds { resource_ids: all.resource_ids.clone(), ..Bounds::default() },
        limit: |all| list(&all.resource_ids),
        asked: |case| {
            let named = [&case.request.resource_id, &case.request.project_id];
            let named: Vec<&str> = named.into_iter().flatten().map(|id| &**id).collect();
            (!named.is_empty()).then(|| list(&named))
        },
    },
    Bound {
        name: "workspace_ids",
        alone: |all| Bounds { workspace_ids: all.workspace_ids.clone(), ..Bounds::default() },
        limit: |all| list(&all.workspace_ids),
        asked: |case| case.request.workspace_id.clone().map(String::from),
    },
    Bound {
        name: "hours",
        alone: |all| Bounds { hours: all.hours.clone(), ..Bounds::default() },
        limit: |all| all.hours.as_ref().map(ToString::to_string).unwrap_or_default(),
        asked: |case| Some(moment::text(case.asked_at)),
    },
    Bound {
        name: "max_uses",
        alone: |all| Bounds { max_uses: all.max_uses, ..Bounds::default() },
        limit: |all| all.max_uses.map(|max| max.count.to_string()).unwrap_or_default(),
        asked: |_| Some("1".to_owned()),
    },
    Bound {
        name: "max_total_amount",
        alone: |all| Bounds { max_total_amount: all.max_total_amount, ..Bounds::default() },
        limit: |all| all.max_total_amount.map(|max| max.amount.to_money()).unwrap_or_default(),
        asked: asked_amount,
    },
];

/// Returns each bound that a refused candidate exceeds; empty if it is refused for another reason.
pub(crate) fn bounds(
    case: &Case<'_>,
    candidate: &Candidate<'_>,
    reason: Reason,
) -> Vec<ExceededBound> {
    match reason {
        // Such an amount is refused regardless of the bounds.
        Reason::ConstraintExceeded if is_negative(case) => Vec::new(),
        Reason::ConstraintExceeded => {
            let each = candidate.bounds().unwrap_or_default().into_iter();
            each.flat_map(|(holder, bounds)| constraints(case, candidate, holder, bounds)).collect()
        }
        Reason::RiskExceedsDelegation => risks(candidate),
        Reason::JurisdictionUnsupported => places(case, candidate),
        Reason::PurposeOutOfScope | Reason::PurposeRequired => purposes(case, candidate),
        _ => Vec::new(),
    }
}

/// Returns the budgets among the exceeded bounds.
pub(crate) fn budgets(case: &Case<'_>, candidate: &Candidate<'_>, reason: Reason) -> Vec<Budget> {
    if reason != Reason::ConstraintExceeded {
        return Vec::new();
    }
    bounds(case, candidate, reason).into_iter().filter_map(|exceeded| exceeded.budget).collect()
}

/// Describes the refusal of a candidate that exceeds no bound; empty if the reason code needs no
/// details.
pub(crate) fn details(case: &Case<'_>, candidate: &Candidate<'_>, reason: Reason) -> Vec<String> {
    match reason {
        Reason::ConstraintExceeded if candidate.bounds().is_none() => {
            vec!["the constraints of the row cannot be read".to_owned()]
        }
        Reason::ConstraintExceeded if is_negative(case) => {
            let asked = asked_amount(case).unwrap_or_default();
            vec![format!("an amount must not be below zero; requested: {asked}")]
        }
        Reason::ContextInvalid => {
            input_check::steps(case, candidate).into_iter().map(|step| step.detail).collect()
        }
        Reason::JurisdictionUnsupported => {
            case.request.jurisdiction().and_then(jurisdiction::fault).into_iter().collect()
        }
        Reason::DelegationNotYetValid
        | Reason::DelegationExpired
        | Reason::DelegationSuspended
        | Reason::DelegationRevoked
        | Reason::DelegatorInactive => not_in_force(case, candidate).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn is_negative(case: &Case<'_>) -> bool {
    case.request.amount().is_some_and(|amount| amount < Amount::ZERO)
}

fn constraints(
    case: &Case<'_>,
    candidate: &Candidate<'_>,
    holder: &str,
    bounds: &Bounds,
) -> Vec<ExceededBound> {
    let id = candidate.record_of(holder);
    let broken = |bound: &&Bound| !limits::within(case, holder, &(bound.alone)(bounds));
    let exceeded = |bound: &Bound| {
        let mut budgets = Budget::of(id, holder, bounds, case.at).into_iter();
        let budget = budgets.find(|budget| budget.bound() == bound.name);
        let is_money = matches!(bound.name, "max_amount" | "max_total_amount");
        ExceededBound {
            currency: bounds.currency.clone().filter(|_| is_money),
            budget: budget.map(|budget| budget.with_used(&case.facts.spent)),
            ..of(bound.name, (bound.limit)(bounds), id, (bound.asked)(case))
        }
    };
    BOUNDS.iter().filter(broken).map(exceeded).collect()
}

/// Returns an exceeded bound without a currency and a budget.
fn of(bound: &str, limit: String, holder: &str, asked: Option<String>) -> ExceededBound {
    let (bound, holder) = (bound.to_owned(), holder.to_owned());
    ExceededBound { bound, holder, limit, currency: None, asked, budget: None }
}

fn risks(candidate: &Candidate<'_>) -> Vec<ExceededBound> {
    let asked = candidate.declared.known_tier.map(|tier| tier.word().to_owned());
    let bounds = candidate.bounds().unwrap_or_default().into_iter();
    let broken = bounds.filter(|(_, bounds)| !limits::risk_holds(candidate, bounds));
    let exceeded = |(holder, bounds): (&str, &Bounds)| {
        let limit = bounds.max_risk_tier.map(RiskTier::word).unwrap_or_default();
        of("max_risk_tier", limit.to_owned(), candidate.record_of(holder), asked.clone())
    };
    broken.map(exceeded).collect()
}

fn places(case: &Case<'_>, candidate: &Candidate<'_>) -> Vec<ExceededBound> {
    let asked = case.request.jurisdiction();
    if asked.and_then(jurisdiction::fault).is_some() {
        return Vec::new();
    }
    let bounds = candidate.bounds().unwrap_or_default();
    let of_authority = bounds.iter().map(|(holder, bounds)| (*holder, &bounds.jurisdictions));
    let of_purpose = case.purpose().map(|purpose| (purpose.id.as_str(), &purpose.jurisdictions));
    let unsupported =
        of_authority.chain(of_purpose).filter(|(_, codes)| !choose::supports(case, codes));
    let exceeded = |(holder, codes): (&str, &Vec<String>)| {
        of("jurisdictions", list(codes), candidate.record_of(holder), asked.map(str::to_owned))
    };
    unsupported.map(exceeded).collect()
}

fn purposes(case: &Case<'_>, candidate: &Candidate<'_>) -> Vec<ExceededBound> {
    let own = case.request.purpose.as_ref();
    let bound = candidate.links().iter().map(|link| (&link.id, &link.bounds.purposes));
    let out =
        bound.filter(|(_, slugs)| !slugs.is_empty() && own.is_none_or(|own| !slugs.contains(own)));
    out.map(|(holder, slugs)| of("purposes", list(slugs), holder, own.cloned())).collect()
}

/// Describes the link or row that is not active.
fn not_in_force(case: &Case<'_>, candidate: &Candidate<'_>) -> Option<String> {
    let (id, window) = match candidate.source {
        Source::Delegation(chain) => {
            let active = |id: &PrincipalRef| case.principal_is_active(id);
            return chain::in_force(&chain.0, active, case.at).err().map(|why| why.to_string());
        }
        Source::Uses(uses) => (&uses.row.id, uses.row.window),
        Source::ActsIn(row) => (&row.id, row.window),
        Source::Unresolved | Source::Nothing => return None,
    };
    window.problem(case.at).map(|problem| format!("{id} {problem}"))
}

fn asked_amount(case: &Case<'_>) -> Option<String> {
    case.request.amount().map(Amount::to_money)
}

fn list(texts: &[impl Borrow<str>]) -> String {
    let shown = texts.get(..NAMED).unwrap_or(texts).join(", ");
    match texts.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
