//! The facts of a subject that may do everything. Tests of a single rule begin with them.

use authority_decision::{Gathered, Pattern, facts::*, levels::PrincipalClass, moment::Window};

use super::worlds::{SUBJECT, TENANT};

pub(super) fn permitted() -> Gathered {
    let row = UsesRow {
        id: "uses-1".into(),
        allowed: true,
        window: Window::default(),
        constraints: Constraints::Bounds(Box::default()),
    };
    let subject = Principal {
        id: SUBJECT.into(),
        class: PrincipalClass::Agent,
        name: "a".to_owned(),
        active: true,
    };
    let tenant = Tenant {
        id: TENANT.into(),
        active: true,
        require_declaration: false,
        gate: Vec::new(),
        valid_for_seconds: 60,
        context_schema: None,
        time_zone: None,
    };
    Gathered {
        tenant: Some(tenant.into()),
        subject: Some(subject.into()),
        uses: vec![Uses { row: row.into(), used: Used::Action(Pattern::All) }],
        ..Gathered::default()
    }
}
