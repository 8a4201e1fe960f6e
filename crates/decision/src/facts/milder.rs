//! Finds the terms that become milder when a tool is changed or ends: the reverse of `stricter`.

use std::fmt::Display;

use super::{
    joined_terms::{JoinedTerms, Term},
    stricter::oversight,
};
use crate::levels::AccessLevel;

/// The mark of a record's warnings about terms that become milder. The text of each begins with it.
pub const MILDER: &str = "milder: ";

/// Describes each loosened term for people. `after` is `None` if no tool is left.
pub fn milder(before: &JoinedTerms, after: Option<&JoinedTerms>) -> Vec<String> {
    let nothing = JoinedTerms::default();
    let is = after.unwrap_or(&nothing);
    let mut found = Vec::new();
    let (asked_before, asked) = (oversight(Some(before)), oversight(after));
    if asked < asked_before {
        found.push(format!("oversight {}, was {}", asked.word(), asked_before.word()));
    }
    let needed = |terms: &JoinedTerms| terms.access_level.strictest.unwrap_or(AccessLevel::Execute);
    let (needed_before, needs) = (needed(before), needed(is));
    if needs < needed_before {
        found.push(format!("access_level {needs}, was {needed_before}"));
    }
    found.extend(fallen("effect_class", &before.effect_class, &is.effect_class, |one| one));
    found.extend(fallen("reversibility", &before.reversibility, &is.reversibility, |one| one));
    let (was, rollback) = (&before.rollback_available, &is.rollback_available);
    found.extend(fallen("rollback_available", was, rollback, |available| !available));
    found.extend(fallen("risk_tier", &before.risk_tier, &is.risk_tier, |one| one));
    let (was, mode) = (&before.required_oversight_mode, &is.required_oversight_mode);
    found.extend(fallen("required_oversight_mode", was, mode, |one| one));
    let required = before.requires.keys().filter(|name| !is.requires.contains_key(*name));
    found.extend(required.map(|name| format!("no longer requires `{name}`")));
    for one in &before.inputs {
        if is.inputs.iter().all(|own| own.schema != one.schema) {
            let changed = is.inputs.iter().any(|own| own.tool_id == one.tool_id);
            found.push(if changed {
                format!("input checked by a changed schema of `{}`", one.tool_id)
            } else {
                format!("input no longer checked by the schema of `{}`", one.tool_id)
            });
        }
    }
    if before.unpinned_by.is_some() && is.unpinned_by.is_none() {
        found.push("no longer denied for a definition that is not pinned".to_owned());
    }
    let definitions = before.definitions.iter();
    let definitions = definitions.filter(|(digest, _)| !is.definitions.contains_key(*digest));
    found.extend(definitions.map(|(_, tool_id)| {
        format!("no longer requires the digest of the definition of `{tool_id}`")
    }));
    // A policy may also refer to a declaration that isn't the strictest.
    if found.is_empty() && is.declarations.len() < before.declarations.len() {
        found.push("policies no longer see its declaration".to_owned());
    }
    found
}

/// Describes a field that has a lower value than before, or that no tool declares any more.
///
/// If a tool omits the field, the field counts as the worst value and is not milder.
fn fallen<T: Copy + Display, K: Ord>(
    name: &str,
    was: &Term<T>,
    is: &Term<T>,
    strictness: fn(T) -> K,
) -> Option<String> {
    let before = was.strictest?;
    match is.strictest {
        Some(now) if strictness(now) < strictness(before) => {
            Some(format!("{name} {now}, was {before}"))
        }
        None if !is.is_omitted() => Some(format!("{name} not declared, was {before}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        facts::records::Tool,
        levels::{EffectClass, OversightMode, Reversibility, RiskTier},
        request::draft::{ActionDeclaration, ActionRiskClassification},
    };

    fn strict() -> Tool {
        Tool {
            id: "svc:ent:acme:tool:pay".into(),
            live: true,
            workspace_id: None,
            actions: Vec::new(),
            requires: vec!["iban".to_owned()],
            access_level: Some(AccessLevel::Owner),
            action_declaration: Some(ActionDeclaration {
                effect_class: Some(EffectClass::Financial),
                reversibility: Some(Reversibility::Irreversible),
                rollback_available: Some(false),
            }),
            input: None,
            definition: None,
            action_risk_classification: Some(ActionRiskClassification {
                risk_tier: Some(RiskTier::High),
                required_oversight_mode: Some(OversightMode::TwoPerson),
            }),
        }
    }

    #[test]
    fn every_term_of_a_tool_that_ends_is_reported() {
        assert_eq!(
            milder(&JoinedTerms::of(&strict()), None),
            [
                "oversight none, was two_person",
                "access_level execute, was owner",
                "effect_class not declared, was financial",
                "reversibility not declared, was irreversible",
                "rollback_available not declared, was false",
                "risk_tier not declared, was high",
                "required_oversight_mode not declared, was two_person",
                "no longer requires `iban`",
            ]
        );
    }

    #[test]
    fn what_stays_or_becomes_stricter_is_not_reported() {
        let terms = JoinedTerms::of(&strict());
        assert!(milder(&terms, Some(&terms)).is_empty());
        let undeclared = JoinedTerms::of(&Tool {
            requires: Vec::new(),
            access_level: None,
            action_declaration: None,
            action_risk_classification: None,
            ..strict()
        });
        assert!(milder(&undeclared, Some(&terms)).is_empty());
    }

    /// If a tool omits `reversibility` but declares other fields, its action counts as
    /// irreversible.
    #[test]
    fn a_member_that_then_counts_as_the_worst_is_not_milder() {
        let mut tool = strict();
        tool.action_declaration =
            Some(ActionDeclaration { reversibility: None, ..tool.action_declaration.unwrap() });
        let (before, after) = (JoinedTerms::of(&strict()), JoinedTerms::of(&tool));
        assert!(milder(&before, Some(&after)).iter().all(|one| !one.contains("reversibility")));
    }
}
