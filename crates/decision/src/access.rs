//! The access that a tool and an effect need.

use super::{
    levels::{AccessLevel, EffectClass},
    records::Tool,
};

/// The access that one tool needs: its access level, or else what its declared effect needs.
pub(super) fn own_access_level(tool: &Tool) -> AccessLevel {
    let declared = tool.action_declaration.and_then(|declaration| declaration.effect_class);
    tool.access_level.unwrap_or_else(|| access_for(declared))
}

/// The access that an effect needs; execute if it is undeclared.
pub(super) fn access_for(effect_class: Option<EffectClass>) -> AccessLevel {
    match effect_class {
        Some(EffectClass::Informational) => AccessLevel::Read,
        Some(EffectClass::DigitalStateChange) => AccessLevel::Write,
        _ => AccessLevel::Execute,
    }
}
