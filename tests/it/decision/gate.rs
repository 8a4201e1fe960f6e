//! The gate has a result for every input, and worse input never lowers it, with any tightening.

use authority_decision::{
    gate::{Effective, Tightening, Undoing, table},
    levels::{EffectClass, Oversight, OversightMode, Reversibility, RiskTier},
};
use proptest::{prelude::*, sample::select};

const UNDOINGS: [Undoing; 3] = [Undoing::Undone, Undoing::Compensated, Undoing::Final];

/// Checks every cell of the table in docs/reference/decision.md: below financial, financial, safety
/// critical.
#[test]
fn the_table_is_as_written() {
    use Oversight::{None as Nobody, Prohibited, SingleApprover as Single, TwoPerson as Two};
    let legal = Oversight::TwoPersonWithLegal;
    let rows = [
        (RiskTier::Minimal, [[Nobody; 3], [Nobody; 3], [Nobody, Single, Single]]),
        (RiskTier::Limited, [[Nobody; 3], [Nobody, Single, Single], [Single; 3]]),
        (RiskTier::High, [[Single; 3], [Single, Two, Two], [Two, Two, legal]]),
        (RiskTier::Unacceptable, [[Prohibited; 3]; 3]),
        (RiskTier::Prohibited, [[Prohibited; 3]; 3]),
    ];
    let classes =
        [EffectClass::DigitalStateChange, EffectClass::Financial, EffectClass::SafetyCritical];
    for (tier, columns) in rows {
        for (undoing, cells) in UNDOINGS.iter().zip(columns) {
            for (class, oversight) in classes.iter().zip(cells) {
                assert_eq!(table(tier, *undoing, *class), oversight, "{tier} {undoing:?} {class}");
            }
        }
    }
    for tier in [RiskTier::Minimal, RiskTier::Limited] {
        for undoing in UNDOINGS {
            assert_eq!(table(tier, undoing, EffectClass::Informational), Nobody);
        }
    }
}

#[test]
fn the_table_never_falls() {
    for tier in RiskTier::ALL {
        for undoing in UNDOINGS {
            for class in EffectClass::ALL {
                let here = table(*tier, undoing, *class);
                for riskier in RiskTier::ALL.iter().filter(|riskier| *riskier >= tier) {
                    assert!(table(*riskier, undoing, *class) >= here);
                }
                for further in UNDOINGS.iter().filter(|further| **further >= undoing) {
                    assert!(table(*tier, *further, *class) >= here);
                }
                for graver in EffectClass::ALL.iter().filter(|graver| *graver >= class) {
                    assert!(table(*tier, undoing, *graver) >= here);
                }
            }
        }
    }
}

fn effective() -> impl Strategy<Value = Effective> {
    let rollback = proptest::option::of(any::<bool>());
    (
        proptest::option::of(select(EffectClass::ALL)),
        proptest::option::of(select(Reversibility::ALL)),
        rollback,
        proptest::option::of(select(RiskTier::ALL)),
        proptest::option::of(select(OversightMode::ALL)),
    )
        .prop_map(|(effect_class, reversibility, rollback_available, risk_tier, required)| {
            Effective { effect_class, reversibility, rollback_available, risk_tier, required }
        })
}

fn tightening() -> impl Strategy<Value = Tightening> {
    (select(RiskTier::ALL), select(EffectClass::ALL), select(&UNDOINGS[..]), select(Oversight::ALL))
        .prop_map(|(risk_tier, effect_class, undoing, oversight)| Tightening {
            risk_tier,
            effect_class,
            undoing,
            oversight,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..<_>::default() })]

    /// Raising any value never lowers the oversight, with any tightening.
    #[test]
    fn raising_a_member_never_lowers_oversight(
        one in effective(),
        other in effective(),
        rules in proptest::collection::vec(tightening(), 0..3),
    ) {
        let here = one.oversight(&rules);
        if one.is_declared() {
            let raised = [
                Effective { effect_class: one.effect_class.max(other.effect_class), ..one },
                Effective { risk_tier: one.risk_tier.max(other.risk_tier), ..one },
                Effective { required: one.required.max(other.required), ..one },
                Effective { rollback_available: Some(false), ..one },
                Effective { rollback_available: None, ..one },
                Effective { reversibility: Some(Reversibility::Irreversible), ..one },
                Effective { reversibility: None, ..one },
            ];
            for raised in raised.into_iter().filter(|raised| {
                // A missing value has a default. Declaring a value below the default is not a rise.
                raised.is_declared() && !lowers_a_default(one, *raised)
            }) {
                prop_assert!(raised.oversight(&rules) >= here, "{raised:?}");
            }
            if let Some(own) = one.reversibility {
                let reversibility = Some(own.max(other.reversibility.unwrap_or(own)));
                let raised = Effective { reversibility, ..one };
                prop_assert!(raised.oversight(&rules) >= here, "{raised:?}");
            }
        }
        prop_assert!(here >= one.oversight(&[]), "a tenant can only tighten");
    }
}

/// Returns whether declaring the value lowers a default: `effect_class: informational` is below
/// `digital_state_change`, and `risk_tier: minimal` is below `limited`. According to
/// docs/reference/decision.md, no other declaration lowers a value.
fn lowers_a_default(from: Effective, to: Effective) -> bool {
    (from.effect_class.is_none() && to.effect_class == Some(EffectClass::Informational))
        || (from.risk_tier.is_none() && to.risk_tier == Some(RiskTier::Minimal))
}
