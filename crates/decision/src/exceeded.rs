//! Describes the bounds of an authority that a request exceeds, with the bound and the requested
//! value.
//!
//! This module does not decide. Each bound is checked separately by the deciding rule.

use super::{
    amount::Amount,
    authority,
    bounds::Bounds,
    candidate::{Candidate, Source},
    case::Case,
    chain, input_check, jurisdiction, limits, moment,
    reason::Reason,
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
    asked: fn(&Case<'_>, &str, &Bounds) -> String,
}

const BOUNDS: [Bound; 7] = [
    Bound {
        name: "max_amount",
        alone: |all| Bounds { max_amount: all.max_amount, ..Bounds::default() },
        limit: |all| money(all.max_amount, all),
        asked: |case, _, _| asked_amount(case),
    },
    Bound {
        name: "currency",
        alone: |all| Bounds { currency: all.currency.clone(), ..Bounds::default() },
        limit: |all| all.currency.clone().unwrap_or_default(),
        asked: |case, _, _| or_none(case.request.currency()),
    },
    Bound {
        name: "resource_ids",
        alone: |all| Bounds { resource_ids: all.resource_ids.clone(), ..Bounds::default() },
        limit: |all| list(&all.resource_ids),
        asked: |case, _, _| {
            let named = [&case.request.resource_id, &case.request.project_id];
            let named: Vec<String> = named.into_iter().flatten().cloned().collect();
            or_none(Some(list(&named).as_str()).filter(|text| !text.is_empty()))
        },
    },
    Bound {
        name: "workspace_ids",
        alone: |all| Bounds { workspace_ids: all.workspace_ids.clone(), ..Bounds::default() },
        limit: |all| list(&all.workspace_ids),
        asked: |case, _, _| or_none(case.request.workspace_id.as_deref()),
    },
    Bound {
        name: "hours",
        alone: |all| Bounds { hours: all.hours.clone(), ..Bounds::default() },
        limit: |all| all.hours.as_ref().map(ToString::to_string).unwrap_or_default(),
        asked: |case, _, _| format!("at {}", moment::text(case.asked_at)),
    },
    Bound {
        name: "max_uses",
        alone: |all| Bounds { max_uses: all.max_uses, ..Bounds::default() },
        limit: |all| {
            let max = all.max_uses.map(|max| (max.count, max.window_seconds));
            max.map(|(count, seconds)| format!("{count} in {seconds} s")).unwrap_or_default()
        },
        asked: |case, holder, all| {
            let [used, _] = limits::spent(case, holder, all);
            format!("1 after {}", used.map_or_else(unknown, |used| used.to_string()))
        },
    },
    Bound {
        name: "max_total_amount",
        alone: |all| Bounds { max_total_amount: all.max_total_amount, ..Bounds::default() },
        limit: |all| {
            let max = all.max_total_amount;
            let seconds = max.map(|max| max.window_seconds).unwrap_or_default();
            format!("{} in {seconds} s", money(max.map(|max| max.amount), all))
        },
        asked: |case, holder, all| {
            let [_, used] = limits::spent(case, holder, all);
            let used = used.map(Amount::from_ten_thousandths);
            format!("{} after {}", asked_amount(case), used.map_or_else(unknown, plain))
        },
    },
];

/// Describes each exceeded bound of a refused candidate; `None` if the reason code needs no
/// details.
pub(super) fn details(
    case: &Case<'_>,
    candidate: &Candidate<'_>,
    reason: Reason,
) -> Option<String> {
    let found: Vec<String> = match reason {
        Reason::ConstraintExceeded => match candidate.bounds() {
            None => vec!["the constraints of the row cannot be read".to_owned()],
            Some(_) if case.request.amount().is_some_and(|amount| amount < Amount::ZERO) => {
                vec![format!("no amount is below zero; asked {}", asked_amount(case))]
            }
            Some(bounds) => {
                let each = bounds.into_iter();
                each.flat_map(|(holder, bounds)| constraints(case, candidate, holder, bounds))
                    .collect()
            }
        },
        Reason::RiskExceedsDelegation => risks(candidate),
        Reason::ContextInvalid => {
            input_check::steps(case, candidate).into_iter().map(|step| step.detail).collect()
        }
        Reason::JurisdictionUnsupported => places(case, candidate),
        Reason::PurposeOutOfScope | Reason::PurposeRequired => purposes(case, candidate),
        Reason::DelegationNotYetValid
        | Reason::DelegationExpired
        | Reason::DelegationSuspended
        | Reason::DelegationRevoked
        | Reason::DelegatorInactive => not_in_force(case, candidate).into_iter().collect(),
        _ => Vec::new(),
    };
    (!found.is_empty()).then(|| found.join(". "))
}

fn constraints(
    case: &Case<'_>,
    candidate: &Candidate<'_>,
    holder: &str,
    bounds: &Bounds,
) -> Vec<String> {
    let broken = |bound: &&Bound| !limits::within(case, holder, &(bound.alone)(bounds));
    let tell = |bound: &Bound| {
        let asked = (bound.asked)(case, holder, bounds);
        of(bound.name, &(bound.limit)(bounds), candidate.record_of(holder), &asked)
    };
    BOUNDS.iter().filter(broken).map(tell).collect()
}

fn of(name: &str, limit: &str, holder: &str, asked: &str) -> String {
    format!("{name} {limit} of {holder}; asked {asked}")
}

fn risks(candidate: &Candidate<'_>) -> Vec<String> {
    let asked = or_none(candidate.declared.known_tier.map(super::levels::RiskTier::word));
    let bounds = candidate.bounds().unwrap_or_default().into_iter();
    let broken = bounds.filter(|(_, bounds)| !limits::risk_holds(candidate, bounds));
    let tell = |(holder, bounds): (&str, &Bounds)| {
        let limit = bounds.max_risk_tier.map(super::levels::RiskTier::word).unwrap_or_default();
        of("max_risk_tier", limit, candidate.record_of(holder), &asked)
    };
    broken.map(tell).collect()
}

fn places(case: &Case<'_>, candidate: &Candidate<'_>) -> Vec<String> {
    if let Some(fault) = case.request.jurisdiction().and_then(jurisdiction::fault) {
        return vec![fault];
    }
    let asked = or_none(case.request.jurisdiction());
    let bounds = candidate.bounds().unwrap_or_default();
    let of_authority = bounds.iter().map(|(holder, bounds)| (*holder, &bounds.jurisdictions));
    let of_purpose = case.purpose().map(|purpose| (purpose.id.as_str(), &purpose.jurisdictions));
    let unsupported =
        of_authority.chain(of_purpose).filter(|(_, codes)| !authority::supports(case, codes));
    let told = unsupported.map(|(holder, codes)| {
        of("jurisdictions", &list(codes), candidate.record_of(holder), &asked)
    });
    told.collect()
}

fn purposes(case: &Case<'_>, candidate: &Candidate<'_>) -> Vec<String> {
    let own = case.request.purpose.as_ref();
    let asked = or_none(own.map(String::as_str));
    let bound = candidate.links().iter().map(|link| (&link.id, &link.bounds.purposes));
    let out =
        bound.filter(|(_, slugs)| !slugs.is_empty() && own.is_none_or(|own| !slugs.contains(own)));
    out.map(|(holder, slugs)| of("purposes", &list(slugs), holder, &asked)).collect()
}

/// Describes the link or row that is not active.
fn not_in_force(case: &Case<'_>, candidate: &Candidate<'_>) -> Option<String> {
    let (id, window) = match candidate.source {
        Source::Delegation(chain) => {
            let active = |id: &str| case.principal_is_active(id);
            return chain::in_force(&chain.0, active, case.at).err().map(|why| why.to_string());
        }
        Source::Uses(uses) => (&uses.row.id, uses.row.window),
        Source::ActsIn(row) => (&row.id, row.window),
        Source::Unresolved | Source::Nothing => return None,
    };
    window.problem(case.at).map(|problem| format!("{id} {problem}"))
}

fn asked_amount(case: &Case<'_>) -> String {
    case.request.amount().map_or_else(|| "none".to_owned(), plain)
}

/// Formats an amount with its currency, if the bound has one.
fn money(amount: Option<Amount>, bounds: &Bounds) -> String {
    let amount = amount.map(plain).unwrap_or_default();
    match &bounds.currency {
        Some(currency) => format!("{amount} {currency}"),
        None => amount,
    }
}

/// Formats an amount with at least two decimals, as is usual for money.
fn plain(amount: Amount) -> String {
    let text = amount.to_string();
    match text.split_once('.') {
        None => format!("{text}.00"),
        Some((whole, part)) => format!("{whole}.{part:0<2}"),
    }
}

fn or_none(text: Option<&str>) -> String {
    text.unwrap_or("none").to_owned()
}

fn unknown() -> String {
    "an unknown sum".to_owned()
}

fn list(texts: &[String]) -> String {
    let shown = texts.get(..NAMED).unwrap_or(texts).join(", ");
    match texts.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
