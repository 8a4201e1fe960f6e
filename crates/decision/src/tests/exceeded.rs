//! Tests that a refusal under `explain` shows the bound and the requested value.

use super::*;
use crate::{
    authority::trace_step::{ExceededBound, Outcome},
    facts::bounds::{MaxTotalAmount, MaxUses},
    levels::RiskTier,
    request::draft::ActionRiskClassification,
};

/// Returns the trace's details of all refusals after this change to the world.
fn details(spoil: impl FnOnce(&mut World)) -> Vec<String> {
    let mut world = World::sound();
    spoil(&mut world);
    world.draft.explain = true;
    let verdict = world.decide();
    assert_eq!(verdict.decision, Decision::Deny);
    let steps = verdict.trace.unwrap().into_iter().flat_map(|stage| stage.steps);
    steps.filter(|step| step.outcome == Outcome::Refuse).map(|step| step.detail).collect()
}

fn detail(spoil: impl FnOnce(&mut World)) -> String {
    let mut found = details(spoil);
    found.dedup();
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

fn amount(text: &str) -> super::super::Amount {
    text.parse().unwrap()
}

fn say(world: &mut World, member: &str, value: serde_json::Value) {
    world.draft.context.insert(member.to_owned(), value);
}

#[test]
fn an_amount() {
    let bound = |w: &mut World| {
        w.link(0).bounds.max_amount = Some(amount("5000"));
        w.link(0).bounds.currency = Some("EUR".to_owned());
    };
    let asked = |value: serde_json::Value| {
        detail(|w| {
            bound(w);
            say(w, "amount", value);
        })
    };
    assert_eq!(asked(json!(7000)), "max_amount of del-1: 5000.00 EUR; requested: 7000.00");
    assert_eq!(asked(json!(7000.5)), "max_amount of del-1: 5000.00 EUR; requested: 7000.50");
    assert_eq!(asked(json!(5000.0001)), "max_amount of del-1: 5000.00 EUR; requested: 5000.0001");
    let none = detail(|w| {
        bound(w);
        w.draft.context.remove("amount");
    });
    assert_eq!(none, "max_amount of del-1: 5000.00 EUR; requested: none");
    // All exceeded bounds of all links.
    let both = detail(|w| {
        bound(w);
        say(w, "amount", json!(7000));
        say(w, "currency", json!("USD"));
        w.link(1).bounds.max_amount = Some(amount("6000"));
    });
    let wanted = "max_amount of del-1: 5000.00 EUR; requested: 7000.00. \
                  currency of del-1: EUR; requested: USD. \
                  max_amount of del-0: 6000.00; requested: 7000.00";
    assert_eq!(both, wanted);
}

#[test]
fn a_counter() {
    let uses = |w: &mut World| {
        w.link(1).bounds.max_uses = Some(MaxUses { count: 20, window_seconds: 3600 });
        w.spent = Some(20);
    };
    let wanted = "max_uses of del-0: 20 in 3600 s; requested: 1; used before: 20; \
                  resets at 2026-01-05T11:00:00Z";
    assert_eq!(detail(uses), wanted);
    let total = |w: &mut World| {
        let max = MaxTotalAmount { amount: amount("450.5"), window_seconds: 86_400 };
        w.link(0).bounds.max_total_amount = Some(max);
        w.link(0).bounds.currency = Some("EUR".to_owned());
        w.spent = Some(4_000_000);
    };
    let wanted = "max_total_amount of del-1: 450.50 EUR in 86400 s; requested: 100.00; \
                  used before: 400.00; resets at 2026-01-06T00:00:00Z";
    assert_eq!(detail(total), wanted);
    let unknown = |w: &mut World| {
        uses(w);
        w.spent = None;
    };
    let wanted = "max_uses of del-0: 20 in 3600 s; requested: 1; used before: unknown; \
                  resets at 2026-01-05T11:00:00Z";
    assert_eq!(detail(unknown), wanted);
}

/// Returns the exceeded bounds of the refused step, as fields.
fn exceeded(spoil: impl FnOnce(&mut World)) -> Vec<ExceededBound> {
    let mut world = World::sound();
    spoil(&mut world);
    world.draft.explain = true;
    let steps = world.decide().trace.unwrap().into_iter().flat_map(|stage| stage.steps);
    steps.flat_map(|step| step.exceeded).collect()
}

#[test]
fn the_same_in_fields() {
    let found = exceeded(|w| {
        w.link(0).bounds.max_amount = Some(amount("50"));
        w.link(0).bounds.currency = Some("EUR".to_owned());
        w.link(1).bounds.max_uses = Some(MaxUses { count: 20, window_seconds: 3600 });
        w.spent = Some(25);
    });
    let [too_much, too_often] = found.as_slice() else { panic!("{found:#?}") };
    let text = |text: &str| Some(text.to_owned());
    let fields = (&*too_much.bound, &*too_much.holder, &*too_much.limit);
    assert_eq!(fields, ("max_amount", "del-1", "50.00"));
    assert_eq!((&too_much.currency, &too_much.asked), (&text("EUR"), &text("100.00")));
    assert_eq!(too_much.budget, None);
    let fields = (&*too_often.bound, &*too_often.holder, &*too_often.limit, &too_often.asked);
    assert_eq!(fields, ("max_uses", "del-0", "20", &text("1")));
    let budget = too_often.budget.as_ref().unwrap();
    // The bound was narrowed below the used part.
    assert_eq!((budget.used, budget.left()), (Some(25), Some(0)));
    assert_eq!(budget.resets_at(), Some(moment("2026-01-05T11:00:00Z")));
    // A request that lacks the value, and a purpose's list.
    let found = exceeded(|w| {
        w.draft.context.remove("jurisdiction");
        w.link(1).bounds.jurisdictions = vec!["GB".to_owned(), "FR".to_owned()];
    });
    let [place] = found.as_slice() else { panic!("{found:#?}") };
    let fields = (&*place.bound, &*place.limit, &place.asked);
    assert_eq!(fields, ("jurisdictions", "GB, FR", &None));
}

/// A refusal lists its budgets even without `explain`. Other decisions have no budgets.
#[test]
fn a_refusal_has_its_budgets() {
    let decided = |spoil: &dyn Fn(&mut World)| {
        let mut world = World::sound();
        spoil(&mut world);
        world.decide()
    };
    let budgets = |w: &mut World| {
        w.link(0).bounds.max_uses = Some(MaxUses { count: 5, window_seconds: 604_800 });
        let max = MaxTotalAmount { amount: amount("450"), window_seconds: 86_400 };
        w.link(1).bounds.max_total_amount = Some(max);
        w.spent = Some(5);
    };
    let refused = decided(&budgets);
    assert_eq!(refused.reason_code, Reason::ConstraintExceeded);
    let [uses] = refused.exceeded_budgets.as_slice() else { panic!("{refused:#?}") };
    assert_eq!((uses.bound(), &*uses.holder_id), ("max_uses", "del-1"));
    assert_eq!((uses.limit, uses.used, uses.left()), (5, Some(5), Some(0)));
    // A week begins on Thursday.
    assert_eq!(uses.resets_at(), Some(moment("2026-01-08T00:00:00Z")));
    let within = decided(&|w| {
        budgets(w);
        w.spent = Some(4);
    });
    assert!(within.decision.permits() && within.exceeded_budgets.is_empty(), "{within:#?}");
    // Another bound is exceeded, or another check refuses before the bounds.
    let others: [&dyn Fn(&mut World); 3] = [
        &|w| {
            budgets(w);
            w.spent = Some(4);
            w.link(0).bounds.max_amount = Some(amount("1"));
        },
        &|w| {
            budgets(w);
            w.link(0).state = DelegationState::Suspended;
        },
        &|w| {
            budgets(w);
            w.draft.context.insert("amount".to_owned(), json!(-1));
        },
    ];
    for spoil in others {
        let refused = decided(spoil);
        assert_eq!(refused.decision, Decision::Deny);
        assert!(refused.exceeded_budgets.is_empty(), "{refused:#?}");
    }
}

#[test]
fn places_and_things_and_hours() {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let currency = |w: &mut World| w.link(0).bounds.currency = Some("USD".to_owned());
    assert_eq!(detail(currency), "currency of del-1: USD; requested: EUR");
    let workspaces =
        |w: &mut World| w.link(0).bounds.workspace_ids = vec!["ws-2".into(), "ws-3".into()];
    assert_eq!(detail(workspaces), "workspace_ids of del-1: ws-2, ws-3; requested: ws-1");
    let resources = detail(|w| {
        w.link(0).bounds.resource_ids = (0..10).map(|place| format!("r{place}").into()).collect();
    });
    let named =
        "resource_ids of del-1: r0, r1, r2, r3, r4, r5, r6, r7 and 2 more; requested: res-1";
    assert!(resources.starts_with(named), "{resources}");
    let jurisdictions = |w: &mut World| {
        w.link(1).bounds.jurisdictions = texts(&["GB", "FR"]);
        let purpose = Arc::make_mut(w.gathered.purpose.as_mut().unwrap());
        purpose.jurisdictions = texts(&["FR"]);
    };
    let wanted = "jurisdictions of del-0: GB, FR; requested: DE. \
                  jurisdictions of purpose-1: FR; requested: DE";
    assert_eq!(details(jurisdictions)[0], wanted);
    let nowhere = detail(|w| {
        w.link(1).bounds.jurisdictions = texts(&["GB"]);
        w.draft.context.remove("jurisdiction");
    });
    assert_eq!(nowhere, "jurisdictions of del-0: GB; requested: none");
    // It is half past ten on a Monday.
    let hours = detail(|w| {
        let hours =
            json!({"utc_offset": "+02:00", "days": ["mon"], "from": "08:00", "to": "12:30"});
        w.link(0).bounds.hours = serde_json::from_value(hours).unwrap();
    });
    let wanted = "hours of del-1: mon 08:00 to 12:30 +02:00; requested: 2026-01-05T10:30:00Z";
    assert_eq!(hours, wanted);
}

#[test]
fn risk_and_purpose() {
    let ceiling = |w: &mut World| w.link(1).bounds.max_risk_tier = Some(RiskTier::Limited);
    assert_eq!(detail(ceiling), "max_risk_tier of del-0: limited; requested: none");
    let high = |w: &mut World| {
        ceiling(w);
        let risk_tier = Some(RiskTier::High);
        let classified = ActionRiskClassification { risk_tier, ..<_>::default() };
        w.draft.action_risk_classification = Some(classified);
    };
    assert_eq!(detail(high), "max_risk_tier of del-0: limited; requested: high");
    let purposes = |w: &mut World| {
        w.link(1).bounds.purposes = vec!["refunds".to_owned(), "travel".to_owned()];
    };
    let told = detail(purposes);
    assert_eq!(told, "purposes of del-0: refunds, travel; requested: payroll");
}

#[test]
fn a_link_that_is_not_in_force() {
    let (early, late) = (moment("2026-01-01T00:00:00Z"), moment("2027-01-01T00:00:00Z"));
    let told = |spoil: fn(&mut World, DateTime<Utc>), at| detail(|w| spoil(w, at));
    let expired = told(|w, at| w.link(1).window.until = Some(at), early);
    assert_eq!(expired, "del-0 expired at 2026-01-01T00:00:00Z");
    let begins = told(|w, at| w.link(1).window.from = Some(at), late);
    assert_eq!(begins, "del-0 begins at 2027-01-01T00:00:00Z");
    let suspended = detail(|w| w.link(0).state = DelegationState::Suspended);
    assert_eq!(suspended, "del-1 is suspended");
    let left = detail(|w| Arc::make_mut(&mut w.gathered.principals[0]).active = false);
    assert_eq!(left, format!("{HUMAN} of del-0 is not active"));
}
