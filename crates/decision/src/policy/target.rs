//! Applies-to targets, which determine where a policy record applies.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    levels::{EffectClass, PrincipalClass, RiskTier},
    pattern::Pattern,
    request::jurisdiction,
};

/// The `target_class` of an applies-to row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Target {
    Everywhere,
    Action(Pattern),
    EffectClass(EffectClass),
    RiskTier(RiskTier),
    PrincipalClass(PrincipalClass),
    ResourceKind(String),
    Purpose(String),
    Jurisdiction(String),
}

/// A text that is not a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a target: write {instead}")]
pub struct TargetError {
    text: String,
    /// The valid forms.
    instead: String,
}

/// The forms of targets.
const FORMS: &str = "`*`, `action:<pattern>`, `effect_class:<word>`, `risk_tier:<word>`, \
    `principal_class:<word>`, `resource_kind:<word>`, `purpose:<slug>` or `jurisdiction:<code>`";

/// The fields of a request that targets match. They are absent if the request lacks them.
///
/// A declared field has several values if no tool is named and the tools differ.
#[derive(Clone, Copy, Debug)]
pub struct Aspects<'a> {
    pub action: &'a str,
    pub effect_classes: &'a [EffectClass],
    pub risk_tiers: &'a [RiskTier],
    pub principal_class: Option<PrincipalClass>,
    pub resource_kind: Option<&'a str>,
    pub purpose: Option<&'a str>,
    pub jurisdiction: Option<&'a str>,
}

impl Target {
    /// Returns the problem of a target that is well-formed but would match any place.
    pub fn fault(&self) -> Option<String> {
        let Self::Jurisdiction(code) = self else { return None };
        jurisdiction::fault(code)
    }

    /// Whether the target matches. A missing field matches: leaving it out does not avoid the
    /// policy.
    pub fn matches(&self, aspects: &Aspects<'_>) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Action(pattern) => pattern.covers(aspects.action),
            Self::EffectClass(class) => is_among(*class, aspects.effect_classes),
            Self::RiskTier(tier) => is_among(*tier, aspects.risk_tiers),
            Self::PrincipalClass(class) => aspects.principal_class.is_none_or(|own| own == *class),
            Self::ResourceKind(kind) => aspects.resource_kind.is_none_or(|own| own == kind),
            Self::Purpose(slug) => aspects.purpose.is_none_or(|own| own == slug),
            Self::Jurisdiction(code) => aspects.jurisdiction.is_none_or(|own| overlap(code, own)),
        }
    }
}

/// Whether either place covers the other. An invalid code may mean any place.
fn overlap(code: &str, place: &str) -> bool {
    let covers = jurisdiction::covers;
    !jurisdiction::is_known(code) || covers(code, place) || covers(place, code)
}

fn is_among<T: Copy + PartialEq>(value: T, possible: &[T]) -> bool {
    possible.is_empty() || possible.contains(&value)
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        if text == "*" {
            return Ok(Self::Everywhere);
        }
        let refused = |instead: String| TargetError { text: text.to_owned(), instead };
        let other_form = || refused(FORMS.to_owned());
        let (class, value) = text.split_once(':').ok_or_else(other_form)?;
        let plain = || {
            let sound = (1..=128).contains(&value.len()) && !value.contains(['\0', ' ']);
            sound.then(|| value.to_owned())
        };
        match class {
            "action" => value.parse().ok().map(Self::Action),
            "effect_class" => EffectClass::from_word(value).map(Self::EffectClass),
            "risk_tier" => RiskTier::from_word(value).map(Self::RiskTier),
            "principal_class" => PrincipalClass::from_word(value).map(Self::PrincipalClass),
            "resource_kind" => plain().map(Self::ResourceKind),
            "purpose" => plain().map(Self::Purpose),
            "jurisdiction" => plain().map(Self::Jurisdiction),
            _ => None,
        }
        .ok_or_else(|| match words(class).as_slice() {
            [] => other_form(),
            words => refused(format!("`{class}:` and one of {}", words.join(", "))),
        })
    }
}

/// Returns the words for targets of this class. Empty if it has no fixed words.
fn words(class: &str) -> Vec<&'static str> {
    match class {
        "effect_class" => EffectClass::ALL.iter().map(|class| class.word()).collect(),
        "risk_tier" => RiskTier::ALL.iter().map(|tier| tier.word()).collect(),
        "principal_class" => PrincipalClass::ALL.iter().map(|class| class.word()).collect(),
        _ => Vec::new(),
    }
}

impl fmt::Display for Target {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everywhere => to.write_str("*"),
            Self::Action(pattern) => write!(to, "action:{pattern}"),
            Self::EffectClass(class) => write!(to, "effect_class:{class}"),
            Self::RiskTier(tier) => write!(to, "risk_tier:{tier}"),
            Self::PrincipalClass(class) => write!(to, "principal_class:{class}"),
            Self::ResourceKind(kind) => write!(to, "resource_kind:{kind}"),
            Self::Purpose(slug) => write!(to, "purpose:{slug}"),
            Self::Jurisdiction(code) => write!(to, "jurisdiction:{code}"),
        }
    }
}

impl TryFrom<String> for Target {
    type Error = TargetError;

    fn try_from(text: String) -> Result<Self, TargetError> {
        text.parse()
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_grammar_only() {
        for text in [
            "*",
            "action:payment.*",
            "action:*",
            "effect_class:financial",
            "risk_tier:high",
            "principal_class:agent",
            "resource_kind:bank_account",
            "purpose:payroll",
            "jurisdiction:DE",
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        for text in ["", "payment.*", "action:", "action:pay*", "risk_tier:higher", "colour:red"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
        let told = |text: &str| text.parse::<Target>().unwrap_err().to_string();
        assert!(
            told("risk_tier:higher").contains("`risk_tier:` and one of"),
            "{}",
            told("risk_tier:higher")
        );
        assert!(told("risk_tier:higher").contains("high"));
        assert!(told("colour:red").contains("`action:<pattern>`"));
    }

    #[test]
    fn a_missing_member_matches() {
        let bare = Aspects {
            action: "payment.execute",
            effect_classes: &[],
            risk_tiers: &[],
            principal_class: None,
            resource_kind: None,
            purpose: None,
            jurisdiction: None,
        };
        for text in ["effect_class:financial", "purpose:payroll", "jurisdiction:DE"] {
            assert!(text.parse::<Target>().unwrap().matches(&bare), "{text}");
        }
        let placed = Aspects { jurisdiction: Some("FR"), ..bare };
        assert!(!"jurisdiction:DE".parse::<Target>().unwrap().matches(&placed));
        assert!(!"action:report.*".parse::<Target>().unwrap().matches(&bare));
    }
}
