//! Whether one delegation is a part of another: the same or narrower in every bound.
//!
//! What is absent or empty is unbounded, so leaving out what the wider one bounds is wider.

use authority_model::{
    proto::delegation::{AmountLimit, Delegation, UseLimit},
    validate::Violations,
    wire::Time,
};
use serde_json::json;

use crate::decision::{Amount, Pattern, hours::Hours, levels::RiskTier};

/// Names each member in which `part` goes beyond `whole`.
pub(super) fn exceeds(part: &Delegation, whole: &Delegation) -> Violations {
    let mut found = Violations::default();
    actions(part, whole, &mut found);
    sets(part, whole, &mut found);
    amounts(part, whole, &mut found);
    times(part, whole, &mut found);
    if let Some(ceiling) = whole.max_risk_tier.as_deref().map(RiskTier::from_word) {
        let own = part.max_risk_tier.as_deref().and_then(RiskTier::from_word);
        let holds = own.is_some_and(|own| ceiling.is_some_and(|ceiling| own <= ceiling));
        expect(holds, "max_risk_tier", &mut found);
    }
    let signed = part.needs_standing_approval || !whole.needs_standing_approval;
    expect(signed, "needs_standing_approval", &mut found);
    found
}

fn expect(holds: bool, field: &str, found: &mut Violations) {
    if !holds {
        found.add(field, "goes beyond what the parent grants");
    }
}

fn actions(part: &Delegation, whole: &Delegation, found: &mut Violations) {
    let outer: Vec<Pattern> = whole.actions.iter().filter_map(|text| text.parse().ok()).collect();
    for (index, text) in part.actions.iter().enumerate() {
        let own = text.parse::<Pattern>();
        let holds = own.is_ok_and(|own| outer.iter().any(|outer| own.is_within(outer)));
        expect(holds, &format!("actions[{index}]"), found);
    }
}

fn sets(part: &Delegation, whole: &Delegation, found: &mut Violations) {
    for (field, own, outer) in [
        ("purposes", &part.purposes, &whole.purposes),
        ("jurisdictions", &part.jurisdictions, &whole.jurisdictions),
        ("resource_ids", &part.resource_ids, &whole.resource_ids),
        ("workspace_ids", &part.workspace_ids, &whole.workspace_ids),
    ] {
        let inside = !own.is_empty() && own.iter().all(|one| outer.contains(one));
        expect(outer.is_empty() || inside, field, found);
    }
}

fn amounts(part: &Delegation, whole: &Delegation, found: &mut Violations) {
    let same = whole.currency.is_none() || part.currency == whole.currency;
    expect(same, "currency", found);
    if let Some(most) = &whole.max_amount {
        let own = part.max_amount.as_ref();
        expect(own.is_some_and(|own| at_most(own, most)), "max_amount", found);
    }
    if let Some(most) = &whole.max_total_amount {
        let holds = |own: &AmountLimit| {
            at_most(&own.amount, &most.amount) && spans(own.window_seconds, most.window_seconds)
        };
        expect(part.max_total_amount.as_ref().is_some_and(holds), "max_total_amount", found);
    }
    if let Some(most) = &whole.max_uses {
        let holds = |own: &UseLimit| {
            own.count <= most.count && spans(own.window_seconds, most.window_seconds)
        };
        expect(part.max_uses.as_ref().is_some_and(holds), "max_uses", found);
    }
}

fn at_most(own: &str, most: &str) -> bool {
    match (own.parse::<Amount>(), most.parse::<Amount>()) {
        (Ok(own), Ok(most)) => own <= most,
        _ => false,
    }
}

/// Windows are fixed: only one made of whole windows of the other never allows more in any of them.
fn spans(own: i32, whole: i32) -> bool {
    whole > 0 && own % whole == 0
}

fn times(part: &Delegation, whole: &Delegation, found: &mut Violations) {
    let late = |own: Option<Time>, outer: Time| own.is_some_and(|own| own >= outer);
    let early = |own: Option<Time>, outer: Time| own.is_some_and(|own| own <= outer);
    let begins = whole.not_before.is_none_or(|outer| late(part.not_before, outer));
    expect(begins, "not_before", found);
    let ends = whole.expires_at.is_none_or(|outer| early(part.expires_at, outer));
    expect(ends, "expires_at", found);
    if whole.hours.is_some() {
        let holds = match (hours(part), hours(whole)) {
            (Some(own), Some(outer)) => own.is_within(&outer),
            _ => false,
        };
        expect(holds, "hours", found);
    }
}

/// As the decision reads them; None also for what it could not read.
pub(super) fn hours(of: &Delegation) -> Option<Hours> {
    let hours = of.hours.as_ref()?;
    serde_json::from_value(json!({
        "utc_offset": hours.utc_offset, "days": hours.days, "from": hours.from, "to": hours.to,
    }))
    .ok()
}

#[cfg(test)]
mod tests {
    use authority_model::proto::delegation::Hours as Written;

    use super::*;

    fn bounded() -> Delegation {
        Delegation {
            actions: vec!["payment.*".into()],
            purposes: vec!["invoices".into(), "refunds".into()],
            jurisdictions: vec!["GB".into()],
            max_amount: Some("500".into()),
            currency: Some("EUR".into()),
            max_risk_tier: Some("limited".into()),
            max_total_amount: Some(AmountLimit { amount: "5000".into(), window_seconds: 3600 }),
            max_uses: Some(UseLimit { count: 10, window_seconds: 60 }),
            hours: Some(Written {
                utc_offset: "Z".into(),
                days: vec!["mon".into(), "tue".into()],
                from: "08:00".into(),
                to: "18:00".into(),
            }),
            expires_at: Some(Time::from_micros(2_000_000)),
            ..Delegation::default()
        }
    }

    fn members(change: impl FnOnce(&mut Delegation)) -> Vec<String> {
        let mut part = bounded();
        change(&mut part);
        exceeds(&part, &bounded()).list.into_iter().map(|fault| fault.field).collect()
    }

    #[test]
    fn the_same_or_narrower_is_a_part() {
        assert!(members(|_| {}).is_empty());
        assert!(
            members(|part| {
                part.actions = vec!["payment.execute".into()];
                part.purposes.truncate(1);
                part.max_amount = Some("499.9999".into());
                part.max_uses = Some(UseLimit { count: 1, window_seconds: 120 });
                part.expires_at = Some(Time::from_micros(1));
                part.resource_ids = vec!["r".into()];
            })
            .is_empty()
        );
    }

    #[test]
    fn each_wider_bound_is_named() {
        assert_eq!(members(|part| part.actions = vec!["*".into()]), ["actions[0]"]);
        assert_eq!(members(|part| part.purposes.clear()), ["purposes"]);
        assert_eq!(members(|part| part.jurisdictions.push("FR".into())), ["jurisdictions"]);
        assert_eq!(members(|part| part.max_amount = None), ["max_amount"]);
        assert_eq!(members(|part| part.max_amount = Some("500.01".into())), ["max_amount"]);
        assert_eq!(members(|part| part.currency = Some("USD".into())), ["currency"]);
        assert_eq!(members(|part| part.max_risk_tier = Some("high".into())), ["max_risk_tier"]);
        assert_eq!(members(|part| part.max_total_amount = None), ["max_total_amount"]);
        let shorter = |part: &mut Delegation| {
            part.max_uses = Some(UseLimit { count: 10, window_seconds: 59 });
        };
        assert_eq!(members(shorter), ["max_uses"]);
        assert_eq!(members(|part| part.hours = None), ["hours"]);
        assert_eq!(members(|part| part.expires_at = None), ["expires_at"]);
    }
}
