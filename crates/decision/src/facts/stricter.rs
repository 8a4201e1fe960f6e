//! Finds terms that become stricter for requests without a tool when a tool is created or changed.

use super::{
    gate::Effective,
    joined_terms::{JoinedInput, JoinedTerms, Term},
    terms::{Declared, Terms},
};
use crate::{
    levels::{AccessLevel, EffectClass, OversightMode, Reversibility, RiskTier},
    request::draft::Draft,
};

/// Describes each term of an action that is stricter in `after` than in `before`. `before` is
/// `None` if no tool performed the action.
pub fn stricter(before: Option<&JoinedTerms>, after: &JoinedTerms) -> Vec<String> {
    let nothing = JoinedTerms::default();
    let was = before.unwrap_or(&nothing);
    let mut found = Vec::new();
    let mut risen = |name: &str, was: Option<&str>, is: Option<&str>| {
        if let Some(is) = is {
            found.push(format!("{name} {is}, was {}", was.unwrap_or("none")));
        }
    };
    let (asked_before, asked) = (oversight(before), oversight(Some(after)));
    risen(
        "oversight",
        Some(asked_before.word()),
        rise(asked_before, asked).map(crate::levels::Oversight::word),
    );
    let level = |terms: &JoinedTerms| terms.access_level.strictest;
    let needed = before.and_then(level).unwrap_or(AccessLevel::Execute);
    let needs = level(after).and_then(|own| rise(needed, own));
    risen("access_level", Some(needed.word()), needs.map(AccessLevel::word));
    let JoinedTerms { effect_class, reversibility, risk_tier, required_oversight_mode, .. } = after;
    member(&was.effect_class, effect_class, "effect_class", EffectClass::word, &mut risen);
    member(&was.reversibility, reversibility, "reversibility", Reversibility::word, &mut risen);
    member(&was.risk_tier, risk_tier, "risk_tier", RiskTier::word, &mut risen);
    let name = "required_oversight_mode";
    let mode = &was.required_oversight_mode;
    member(mode, required_oversight_mode, name, OversightMode::word, &mut risen);
    let (lost, rollback) = (was.rollback_available.strictest, after.rollback_available.strictest);
    if (lost, rollback) == (Some(true), Some(false)) {
        risen("rollback_available", Some("true"), Some("false"));
    }
    let required = after.requires.keys().filter(|name| !was.requires.contains_key(*name));
    found.extend(required.map(|name| format!("requires `{name}`")));
    let is_new = |one: &&JoinedInput| was.inputs.iter().all(|own| own.schema != one.schema);
    let checked = after.inputs.iter().filter(is_new);
    found.extend(checked.map(|one| format!("input checked by the schema of `{}`", one.tool_id)));
    found
}

fn member<T: Copy + Ord>(
    was: &Term<T>,
    is: &Term<T>,
    name: &str,
    word: fn(T) -> &'static str,
    risen: &mut impl FnMut(&str, Option<&str>, Option<&str>),
) {
    if let (Some(was), Some(is)) = (was.strictest, is.strictest) {
        risen(name, Some(word(was)), rise(was, is).map(word));
    }
}

fn rise<T: Copy + Ord>(was: T, is: T) -> Option<T> {
    (is > was).then_some(is)
}

/// Returns the gate's default oversight for a request without a declaration.
pub(crate) fn oversight(terms: Option<&JoinedTerms>) -> crate::levels::Oversight {
    let terms = terms.map_or(Terms::Nobody, Terms::Joined);
    let counted: Effective = Declared::of(&Draft::default(), None, terms).counted;
    counted.oversight(&[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        facts::records::Tool,
        request::draft::{ActionDeclaration, ActionRiskClassification},
    };

    fn tool(class: Option<EffectClass>, tier: Option<RiskTier>) -> Tool {
        Tool {
            id: "t".into(),
            live: true,
            workspace_id: None,
            actions: Vec::new(),
            requires: Vec::new(),
            access_level: None,
            action_declaration: class.map(|effect_class| ActionDeclaration {
                effect_class: Some(effect_class),
                reversibility: Some(Reversibility::Reversible),
                rollback_available: None,
            }),
            input: None,
            definition: None,
            action_risk_classification: tier.map(|risk_tier| ActionRiskClassification {
                risk_tier: Some(risk_tier),
                required_oversight_mode: None,
            }),
        }
    }

    #[test]
    fn terms_that_are_no_stricter_are_not_reported() {
        let plain = JoinedTerms::of(&tool(None, None));
        assert!(stricter(None, &plain).is_empty());
        let tame = JoinedTerms::of(&tool(Some(EffectClass::Informational), None));
        assert!(stricter(None, &tame).is_empty() && stricter(Some(&tame), &tame).is_empty());
    }

    #[test]
    fn each_stricter_term_is_reported() {
        let tame =
            JoinedTerms::of(&tool(Some(EffectClass::Informational), Some(RiskTier::Minimal)));
        let mut wild = tool(Some(EffectClass::Financial), Some(RiskTier::High));
        wild.requires = vec!["iban".to_owned()];
        let wild = JoinedTerms::of(&wild);
        assert_eq!(
            stricter(Some(&tame), &wild),
            [
                "oversight single_approver, was none",
                "access_level execute, was read",
                "effect_class financial, was informational",
                "risk_tier high, was minimal",
                "requires `iban`",
            ]
        );
        assert_eq!(
            stricter(None, &wild),
            ["oversight single_approver, was none", "requires `iban`"]
        );
    }
}
