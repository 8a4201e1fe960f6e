//! Tests that a renewal replaces the renewed delegation in counters, stops and permissions.

use super::*;
use crate::{
    CompiledPolicy, PermissionStatus, PolicyReference,
    authority::used::{AuthorityKind, AuthorityUsed},
    facts::bounds::{Bounds, MaxUses},
    judge_again,
};

/// The sound world after `del-1`, which the request names, was renewed as `del-2` and `del-3`.
fn renewed() -> World {
    let mut world = World::sound();
    world.gathered.successor_id = Some("del-3".into());
    let link = world.link(0);
    link.id = "del-3".into();
    link.line_id = Some("del-1".into());
    world
}

fn used(id: &str) -> AuthorityUsed {
    AuthorityUsed { kind: AuthorityKind::Delegation, id: id.into(), chain: Vec::new() }
}

#[test]
fn a_request_that_names_the_renewed_one_uses_the_successor() {
    let verdict = renewed().decide();
    assert_eq!(verdict.reason_code, Reason::PermissionGranted);
    assert_eq!(verdict.authority.unwrap().chain, ["del-3", "del-0"]);
    // Without this fact, the chain is another delegation's.
    let mut other = renewed();
    other.gathered.successor_id = None;
    assert_eq!(other.decide().reason_code, Reason::DelegationUnknown);
    // The fact stands for the named delegation only.
    let mut third = renewed();
    third.gathered.successor_id = Some("del-4".into());
    assert_eq!(third.decide().reason_code, Reason::DelegationUnknown);
}

#[test]
fn the_line_has_one_budget() {
    let bounds = |world: &mut World| {
        let max_uses = Some(MaxUses { count: 1, window_seconds: 60 });
        world.link(0).bounds = Bounds { max_uses, ..Bounds::default() };
    };
    let (mut before, mut after) = (World::sound(), renewed());
    bounds(&mut before);
    bounds(&mut after);
    let counted = before.decide().claims.counters;
    assert_eq!(counted[0].key.holder_id, "del-1");
    assert_eq!(after.decide().claims.counters, counted);
    after.spent = Some(1);
    assert_eq!(after.decide().reason_code, Reason::ConstraintExceeded);
}

#[test]
fn the_exceeded_bound_is_the_successors() {
    let mut world = renewed();
    world.draft.explain = true;
    world.link(0).bounds = serde_json::from_value(json!({"max_amount": "99"})).unwrap();
    let trace = serde_json::to_string(&world.decide().trace).unwrap();
    assert!(trace.contains("max_amount of del-3: 99.00"), "{trace}");
}

#[test]
fn a_quarantine_covers_the_whole_line() {
    let quarantine = |line: &str| {
        let mut world = renewed();
        world.gathered.quarantines.push(Arc::new(Quarantine {
            id: "quarantine-1".into(),
            subject_id: None,
            action: None,
            delegation_id: Some(line.into()),
        }));
        world.decide().reason_code
    };
    assert_eq!(quarantine("del-1"), Reason::CapabilityQuarantined);
    assert_eq!(quarantine("del-0"), Reason::CapabilityQuarantined);
    assert_eq!(quarantine("del-9"), Reason::PermissionGranted);
}

/// Whether a policy that forbids this delegation denies the world's request.
fn is_forbidden(mut world: World, id: &str) -> bool {
    let text = format!(
        "forbid(principal, action, resource) \
         when {{ context has delegation && context.delegation == \"{id}\" }};"
    );
    let reference = PolicyReference {
        id: "policy-1".into(),
        version: 1,
        sha256: String::new(),
        applies_to: Vec::new(),
        effective: Window::default(),
    };
    let policy = CompiledPolicy::compile(reference, &text).unwrap();
    world.gathered.policies.push(Arc::new(policy));
    world.decide().decision == Decision::Deny
}

#[test]
fn a_policy_about_the_first_one_binds_the_line() {
    assert!(is_forbidden(World::sound(), "del-1"));
    assert!(is_forbidden(renewed(), "del-1"));
    assert!(!is_forbidden(renewed(), "del-0"));
}

#[test]
fn a_permission_continues_under_the_successor() {
    let world = renewed();
    let request = Request::new(world.draft.clone()).unwrap();
    let judge = |world: &World, id: &str| {
        let status = PermissionStatus::judge(&request, &used(id), &world.facts(), now());
        let again = judge_again(&request, &used(id), &world.facts(), now(), now());
        assert_eq!(status.stopped.is_none(), again.decision.permits(), "{id}");
        status.stopped
    };
    assert_eq!(judge(&world, "del-1"), None);
    assert_eq!(judge(&world, "del-9"), Some(Reason::DelegationUnknown));
    let mut over = renewed();
    over.link(0).state = DelegationState::Revoked;
    assert_eq!(judge(&over, "del-1"), Some(Reason::DelegationRevoked));
}

/// Facts without a renewal have the same bytes as before this field existed.
#[test]
fn facts_without_a_renewal_do_not_mention_it() {
    let sealed = serde_json::to_string(&World::sound().gathered).unwrap();
    assert!(!sealed.contains("line_id") && !sealed.contains("successor_id"), "{sealed}");
    let sealed = serde_json::to_value(&renewed().gathered).unwrap();
    assert_eq!(sealed["successor_id"], "del-3");
    assert_eq!(sealed["delegations"][0][0]["line_id"], "del-1");
}
