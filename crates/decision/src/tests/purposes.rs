//! Tests stage 2, alone and with the other stages.

use super::*;
use crate::{Admission, admit};

fn purpose(change: impl FnOnce(&mut Purpose)) -> Reason {
    code(|w| change(Arc::make_mut(w.gathered.purpose.as_mut().unwrap())))
}

#[test]
fn known_admitted_and_in_scope() {
    assert_eq!(code(|w| w.gathered.purpose = None), Reason::PurposeUnknown);
    let refused = Reason::PurposeNotAdmitted;
    assert_eq!(purpose(|p| p.active = false), refused);
    assert_eq!(purpose(|p| p.allowed_actions.clear()), refused);
    assert_eq!(purpose(|p| p.principal_classes = vec![PrincipalClass::Human]), refused);
    assert_eq!(purpose(|p| p.window.until = Some(now())), refused);
    assert_eq!(
        purpose(|p| p.jurisdictions = vec!["FR".to_owned()]),
        Reason::JurisdictionUnsupported
    );
    let bound = |slug: &str, declared: Option<&str>| {
        code(|w| {
            w.link(1).bounds.purposes = vec![slug.to_owned()];
            w.draft.purpose = declared.map(str::to_owned);
        })
    };
    assert_eq!(bound("payroll", Some("payroll")), Reason::PermissionGranted);
    assert_eq!(bound("refunds", Some("payroll")), Reason::PurposeOutOfScope);
    assert_eq!(bound("refunds", None), Reason::PurposeRequired);
}

#[test]
fn admission_alone() {
    let admitted = |change: fn(&mut World)| {
        let mut world = World::sound();
        change(&mut world);
        let request = Request::new(world.draft).unwrap();
        admit(&request, &Facts::new(world.gathered.into()), now())
    };
    assert_eq!(admitted(|_| {}), (Admission::Admit, None));
    let unknown = (Admission::Reject, Some(Reason::PurposeUnknown));
    assert_eq!(admitted(|w| w.gathered.purpose = None), unknown);
    let refused = |admission| (admission, Some(Reason::PurposeNotAdmitted));
    let placed = |w: &mut World| {
        let purpose = Arc::make_mut(w.gathered.purpose.as_mut().unwrap());
        purpose.jurisdictions = vec!["FR".to_owned()];
    };
    assert_eq!(admitted(placed), refused(Admission::Reject));
    let unplaced = |w: &mut World| {
        let purpose = Arc::make_mut(w.gathered.purpose.as_mut().unwrap());
        purpose.jurisdictions = vec!["FR".to_owned()];
        w.draft.context.remove("jurisdiction");
    };
    assert_eq!(admitted(unplaced), refused(Admission::RequireClarification));
}
