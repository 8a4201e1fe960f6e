//! The proposed record of an MCP server's tool. A person sees it before the definition is pinned.
//!
//! Annotations are claims of the server. They count only if the server's `trusted_annotations` is set.

use authority_crypto::sha256;
use authority_decision::levels::{EffectClass, Reversibility, RiskTier};
use authority_model::proto::registry::{ActionDeclaration, ActionRiskClassification};
use serde_json::{Map, Value};

/// The maximum length of an action.
const LONGEST: usize = 128;
/// The length of the part of a digest that replaces the end of a long name.
const DIGITS: usize = 8;

/// Returns the action of a tool's calls: `mcp.<server>.<tool>`.
///
/// Names that differ only in case or in characters that actions lack have the same action. A long
/// name is cut, and ends with a part of its digest.
pub(super) fn action(slug: &str, name: &str) -> String {
    let fits = |letter: char| matches!(letter, 'a'..='z' | '0'..='9' | '_' | '-');
    let letters = name.to_lowercase();
    let letters = letters.chars().map(|letter| if fits(letter) { letter } else { '-' });
    let action: String = format!("mcp.{slug}.").chars().chain(letters).collect();
    if action.len() <= LONGEST {
        return action;
    }
    let digest = hex::encode(sha256(name.as_bytes()));
    let kept = action.get(..LONGEST - DIGITS - 1).unwrap_or_default();
    format!("{kept}-{}", digest.get(..DIGITS).unwrap_or_default())
}

/// Returns the proposed declaration of a tool with this definition.
pub(super) fn declaration(
    definition: &Map<String, Value>,
    is_trusted: bool,
) -> (ActionDeclaration, ActionRiskClassification) {
    let hint = |name: &str| {
        let hint = definition.get("annotations").and_then(|hints| hints.get(name));
        hint.and_then(Value::as_bool).filter(|_| is_trusted)
    };
    let (effect, reversibility, tier) = if hint("readOnlyHint") == Some(true) {
        (EffectClass::Informational, Reversibility::Reversible, RiskTier::Minimal)
    } else if hint("destructiveHint") == Some(false) {
        (EffectClass::DigitalStateChange, Reversibility::Compensatable, RiskTier::Limited)
    } else {
        (EffectClass::DigitalStateChange, Reversibility::Irreversible, RiskTier::Limited)
    };
    let declaration = ActionDeclaration {
        effect_class: Some(effect.word().to_owned()),
        reversibility: Some(reversibility.word().to_owned()),
        rollback_available: None,
    };
    let classification = ActionRiskClassification {
        risk_tier: Some(tier.word().to_owned()),
        required_oversight_mode: None,
    };
    (declaration, classification)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn actions_are_made_from_names() {
        assert_eq!(action("github", "create_issue"), "mcp.github.create_issue");
        assert_eq!(action("github", "Create.Issue v2"), "mcp.github.create-issue-v2");
        let long = [action("s", &"x".repeat(200)), action("s", &"x".repeat(201))];
        assert!(long.iter().all(|action| action.len() == 128) && long[0] != long[1]);
    }

    #[test]
    fn annotations_count_only_if_they_are_trusted() {
        let words = |hints: Value, is_trusted: bool| {
            let definition = json!({"name": "a", "annotations": hints});
            let (effect, risk) = declaration(definition.as_object().unwrap(), is_trusted);
            let words = [effect.effect_class, effect.reversibility, risk.risk_tier];
            words.map(Option::unwrap_or_default).join(" ")
        };
        let worst = "digital_state_change irreversible limited";
        for (hints, trusted) in [
            (json!({"readOnlyHint": true}), "informational reversible minimal"),
            (
                json!({"readOnlyHint": true, "destructiveHint": true}),
                "informational reversible minimal",
            ),
            (json!({"destructiveHint": false}), "digital_state_change compensatable limited"),
            (json!({"readOnlyHint": false}), worst),
            (json!({"destructiveHint": true}), worst),
            (json!({"readOnlyHint": "true"}), worst),
            (json!({}), worst),
            (json!(null), worst),
        ] {
            assert_eq!(words(hints.clone(), true), trusted, "{hints}");
            assert_eq!(words(hints, false), worst);
        }
    }
}
