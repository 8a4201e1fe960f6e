//! The access level that a tool or an effect needs.

use super::records::Tool;
use crate::levels::{AccessLevel, EffectClass};

/// Returns a tool's own access level or, without one, the level for its declared effect.
pub(crate) fn own_access_level(tool: &Tool) -> AccessLevel {
    let declared = tool.action_declaration.and_then(|declaration| declaration.effect_class);
    tool.access_level.unwrap_or_else(|| access_for(declared))
}

/// Returns the access level for an effect: execute if the effect is undeclared.
pub(crate) fn access_for(effect_class: Option<EffectClass>) -> AccessLevel {
    match effect_class {
        Some(EffectClass::Informational) => AccessLevel::Read,
        Some(EffectClass::DigitalStateChange) => AccessLevel::Write,
        _ => AccessLevel::Execute,
    }
}
