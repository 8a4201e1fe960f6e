//! Tests requests on behalf of a principal: only authority with that delegator counts.

use super::*;
use crate::verdict::AuthorityKind;

/// Returns the reason code of a request on behalf of this principal, after this change to the world.
fn for_principal(id: &str, spoil: impl FnOnce(&mut World)) -> Reason {
    code(|w| {
        w.draft.on_behalf_of = Some(id.into());
        spoil(w);
    })
}

#[test]
fn every_delegator_of_the_chain_counts() {
    for id in [HUMAN, PARENT_AGENT] {
        assert_eq!(for_principal(id, |_| ()), Reason::PermissionGranted, "{id}");
        let unnamed = |w: &mut World| w.draft.delegation_id = None;
        assert_eq!(for_principal(id, unnamed), Reason::PermissionGranted, "{id}");
    }
}

/// The delegate does not count. An unknown principal is refused in the same way.
#[test]
fn other_principals_do_not_count() {
    for id in [SUBJECT, "svc:agent:t:nobody", "svc:ent:other:principal:h"] {
        assert_eq!(for_principal(id, |_| ()), Reason::DelegationMismatch, "{id}");
    }
}

#[test]
fn an_authority_without_a_delegator_does_not_count() {
    let payments = || Used::Action("payment.execute".parse().unwrap());
    let uses = |w: &mut World| {
        w.draft.delegation_id = None;
        w.gathered.delegations.clear();
        w.uses("uses-1", payments());
    };
    assert_eq!(code(uses), Reason::ResourceAccessMissing);
    assert_eq!(for_principal(HUMAN, uses), Reason::DelegationMismatch);
    let acts_in = |w: &mut World| {
        w.draft.delegation_id = None;
        w.gathered.delegations.clear();
        Arc::make_mut(&mut w.gathered.acts_in[0]).allowed_actions = Some(patterns(&["payment.*"]));
    };
    assert_eq!(for_principal(HUMAN, acts_in), Reason::DelegationMismatch);
    let nothing = |w: &mut World| {
        w.draft.delegation_id = None;
        w.gathered.delegations.clear();
    };
    assert_eq!(code(nothing), Reason::PermissionMissing);
    assert_eq!(for_principal(HUMAN, nothing), Reason::DelegationMismatch);
}

/// The `uses` row names the action exactly and would be tried first.
#[test]
fn the_authority_that_counts_is_used() {
    let mut world = World::sound();
    world.draft.delegation_id = None;
    world.draft.resource_id = None;
    world.uses("uses-1", Used::Action("payment.execute".parse().unwrap()));
    assert_eq!(world.decide().authority.unwrap().kind, AuthorityKind::Uses);
    world.draft.on_behalf_of = Some(HUMAN.into());
    assert_eq!(world.decide().authority.unwrap().id, "del-1");
}

#[test]
fn a_delegation_that_counts_gives_its_own_reason() {
    let expired = |w: &mut World| {
        w.draft.delegation_id = None;
        w.link(0).window.until = Some(now());
        let other = link("del-2", None, "svc:ent:t:principal:other", SUBJECT).into();
        w.gathered.delegations.push(Chain(vec![other]));
    };
    assert_eq!(for_principal(HUMAN, expired), Reason::DelegationExpired);
    let unknown = |w: &mut World| w.gathered.delegations.clear();
    assert_eq!(for_principal(HUMAN, unknown), Reason::DelegationUnknown);
}

/// A permission on behalf of a principal ends if the chain changes and lacks the principal.
#[test]
fn a_permission_ends_with_its_delegator() {
    let mut world = World::sound();
    world.draft.on_behalf_of = Some(HUMAN.into());
    let used = world.decide().authority.unwrap();
    let judged = |world: &World| {
        let request = Request::new(world.draft.clone()).unwrap();
        super::super::PermissionStatus::judge(&request, &used, &world.facts(), now()).stopped
    };
    assert_eq!(judged(&world), None);
    world.link(1).delegator_id = "svc:ent:t:principal:other".into();
    assert_eq!(judged(&world), Some(Reason::DelegationMismatch));
}
