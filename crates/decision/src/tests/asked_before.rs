//! Tests denials that replace a hold, but never another result.

use super::{
    approvals::{approval, drift, drifted, risky},
    *,
};
use crate::{
    facts::records::{Declined, OpenRequests},
    levels::{ApprovalState, RiskTier, RuntimeEffect},
};

fn declined(facts: &mut Facts) {
    let at = moment("2026-01-05T10:20:00Z");
    facts.declined = Some(Declined { approval_id: "approval-9".into(), at });
}

fn full(facts: &mut Facts) {
    facts.open_requests = Some(OpenRequests { pending: 500, limit: 500 });
}

fn reasons(world: &World, change: impl FnOnce(&mut Facts)) -> Vec<Reason> {
    let mut facts = world.facts();
    change(&mut facts);
    decide(&Request::new(world.draft.clone()).unwrap(), &facts, now()).reasons
}

#[test]
fn a_declined_question_is_denied_instead_of_held() {
    let mut world = risky(RiskTier::High, None);
    assert_eq!(reasons(&world, |_| ()), [Reason::OversightRequired]);
    assert_eq!(reasons(&world, declined), [Reason::ApprovalDeclined]);
    // Both refusals apply.
    let both = |facts: &mut Facts| {
        declined(facts);
        full(facts);
    };
    assert_eq!(reasons(&world, both), [Reason::ApprovalDeclined]);
    // A cited approval takes precedence only if it counts.
    world.draft.approval_id = Some("approval-1".into());
    let enough = approval(&[("ann", "legal"), ("bob", "approver")]);
    world.approval = Some(enough.clone());
    assert_eq!(reasons(&world, declined), [Reason::PermissionGranted]);
    world.approval = Some(Approval { state: ApprovalState::Declined, ..enough.clone() });
    assert_eq!(reasons(&world, declined), [Reason::ApprovalDeclined]);
    world.approval = Some(approval(&[("ann", "legal")]));
    assert_eq!(reasons(&world, declined), [Reason::ApprovalDeclined]);
    // The approval meets the first hold. The remaining hold waits for a snapshot.
    world.approval = Some(enough);
    drift(&mut world, drifted(RuntimeEffect::RequireRevalidation));
    assert_eq!(reasons(&world, declined), [Reason::RealityRevalidationRequired]);
}

#[test]
fn neither_an_allow_nor_another_denial_is_replaced() {
    for change in [declined as fn(&mut Facts), full] {
        assert_eq!(reasons(&World::sound(), change), [Reason::PermissionGranted]);
        assert_eq!(reasons(&risky(RiskTier::Prohibited, None), change), [Reason::RiskProhibited]);
        let mut world = risky(RiskTier::High, None);
        world.draft.action = "payment.other".to_owned();
        assert_eq!(reasons(&world, change), reasons(&world, |_| ()));
    }
}

/// A hold that does not open a request is within the limit. A declined question is still denied.
#[test]
fn what_people_cannot_resolve_opens_no_request() {
    let mut world = World::sound();
    drift(&mut world, drifted(RuntimeEffect::RequireRevalidation));
    assert_eq!(reasons(&world, full), [Reason::RealityRevalidationRequired]);
    assert_eq!(reasons(&world, declined), [Reason::ApprovalDeclined]);
}

#[test]
fn only_as_many_as_permitted_are_too_many() {
    let world = risky(RiskTier::High, None);
    for (pending, reason) in [
        (499, Reason::OversightRequired),
        (500, Reason::ApprovalLimitReached),
        (501, Reason::ApprovalLimitReached),
    ] {
        let open = |facts: &mut Facts| {
            facts.open_requests = Some(OpenRequests { pending, limit: 500 });
        };
        assert_eq!(reasons(&world, open), [reason], "{pending}");
    }
}

/// A decline and open requests that don't affect the decision aren't part of the sealed facts.
#[test]
fn they_are_sealed_only_where_they_are() {
    let facts = World::sound().facts();
    let sealed = serde_json::to_value(&facts).unwrap();
    assert!(sealed.get("declined").is_none() && sealed.get("open_requests").is_none());
    let mut facts = facts;
    declined(&mut facts);
    full(&mut facts);
    let text = serde_json::to_string(&facts).unwrap();
    let read: FactsDocument = serde_json::from_str(&text).unwrap();
    assert_eq!((read.declined, read.open_requests), (facts.declined, facts.open_requests));
}
