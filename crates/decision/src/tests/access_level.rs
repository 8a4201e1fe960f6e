//! Tests the access level that a grant must give.

use super::*;
use crate::{
    levels::{EffectClass, Reversibility},
    request::draft::ActionDeclaration,
};

/// Only a tool's record can require less than execute. A caller's declaration can only raise it.
#[test]
fn the_access_level_needed() {
    let declared = |effect_class| ActionDeclaration {
        effect_class: Some(effect_class),
        reversibility: Some(Reversibility::Reversible),
        rollback_available: Some(true),
    };
    let needed = |asked: Option<EffectClass>,
                  of_tool: (Option<EffectClass>, Option<AccessLevel>)| {
        let enough = |level: &AccessLevel| {
            code(|w| {
                w.draft.action_declaration = asked.map(declared);
                let tool = Arc::make_mut(w.gathered.tool.as_mut().unwrap());
                tool.action_declaration = of_tool.0.map(declared);
                tool.access_level = of_tool.1;
                for grant in &mut w.gathered.grants {
                    Arc::make_mut(grant).access_level = *level;
                }
            }) == Reason::PermissionGranted
        };
        AccessLevel::ALL.iter().copied().find(enough).unwrap()
    };
    use AccessLevel::{Admin, Execute, Read, Write};
    use EffectClass::{DigitalStateChange, Financial, Informational, SafetyCritical};
    assert_eq!(needed(None, (None, None)), Execute);
    for asked in [Informational, DigitalStateChange, Financial] {
        assert_eq!(needed(Some(asked), (None, None)), Execute, "{asked} said by the caller");
    }
    assert_eq!(needed(None, (Some(Informational), None)), Read);
    assert_eq!(needed(None, (Some(DigitalStateChange), None)), Write);
    assert_eq!(needed(None, (Some(SafetyCritical), None)), Execute);
    assert_eq!(needed(None, (Some(SafetyCritical), Some(Read))), Read);
    assert_eq!(needed(None, (None, Some(Read))), Read);
    assert_eq!(needed(None, (None, Some(Admin))), Admin);
    assert_eq!(needed(Some(Informational), (None, Some(Admin))), Admin);
    assert_eq!(needed(Some(Informational), (Some(Informational), None)), Read);
    assert_eq!(needed(Some(DigitalStateChange), (Some(Informational), None)), Write);
    assert_eq!(needed(Some(Financial), (Some(Informational), None)), Execute);
    assert_eq!(needed(Some(Financial), (None, Some(Read))), Execute);
}
