//! Judges a permission again. Some facts are kept from its decision, and others are current.

use chrono::TimeDelta;

use super::*;
use crate::{
    CompiledPolicy, PolicyReference,
    authority::used::{AuthorityKind, AuthorityUsed},
    facts::turn::{is_same, next_turn},
    judge_again,
    levels::ApprovalState,
};

/// Twelve hours after the decision: a Monday evening.
fn later() -> DateTime<Utc> {
    now() + TimeDelta::hours(12)
}

/// Judges a permission of the sound world again after this change.
fn judged(spoil: impl FnOnce(&mut World)) -> Reason {
    let mut world = World::sound();
    let used = world.decide().authority.unwrap();
    spoil(&mut world);
    again(&world, &used)
}

fn again(world: &World, used: &AuthorityUsed) -> Reason {
    let request = Request::new(world.draft.clone()).unwrap();
    let verdict = judge_again(&request, used, &world.facts(), now(), later());
    assert_eq!(verdict.reason_code == Reason::PermissionGranted, verdict.decision.permits());
    verdict.reason_code
}

fn bounds(json: serde_json::Value) -> crate::Bounds {
    serde_json::from_value(json).unwrap()
}

fn policy(text: &str, effective: Window) -> Arc<CompiledPolicy> {
    let reference = PolicyReference {
        id: "policy-1".into(),
        version: 1,
        sha256: String::new(),
        applies_to: Vec::new(),
        effective,
    };
    Arc::new(CompiledPolicy::compile(reference, text).unwrap())
}

#[test]
fn what_nobody_changed_is_still_permitted() {
    assert_eq!(judged(|_| {}), Reason::PermissionGranted);
}

#[test]
fn each_tightening_counts() {
    assert_eq!(
        judged(|world| world.link(1).bounds = bounds(json!({"max_amount": "99"}))),
        Reason::ConstraintExceeded
    );
    assert_eq!(
        judged(|world| world.link(0).bounds = bounds(json!({"jurisdictions": ["FR"]}))),
        Reason::JurisdictionUnsupported
    );
    let forbids = "forbid(principal, action, resource);";
    assert_eq!(
        judged(|world| world.gathered.policies.push(policy(forbids, Window::default()))),
        Reason::PolicyDenied
    );
    assert_eq!(judged(|world| world.gathered.grants.clear()), Reason::ResourceAccessMissing);
    assert_eq!(judged(|world| world.gathered.tenant = None), Reason::TenantInactive);
}

/// Hours and `now` come from the time of the request. Start and end times are compared with the
/// current time.
#[test]
fn hours_and_now_are_those_of_the_decision_and_windows_are_not() {
    let hours = |from: &str, to: &str| bounds(json!({"hours": {"from": from, "to": to}}));
    let within = |from, to| judged(|world| world.link(0).bounds = hours(from, to));
    assert_eq!(
        within("10:00", "11:00"),
        Reason::PermissionGranted,
        "the request was made at 10:30"
    );
    assert_eq!(
        within("22:00", "23:00"),
        Reason::ConstraintExceeded,
        "it is 22:30 now, but hours are compared with the time of the request"
    );

    let noon = r#"context.now >= datetime("2026-01-05T12:00:00Z")"#;
    let forbids = |when: &str| {
        let text = format!("forbid(principal, action, resource) when {{ {when} }};");
        judged(move |world| world.gathered.policies.push(policy(&text, Window::default())))
    };
    assert_eq!(forbids(noon), Reason::PermissionGranted);
    assert_eq!(forbids(&format!("!({noon})")), Reason::PolicyDenied);

    let at_noon = window(None, Some("2026-01-05T12:00:00Z"));
    let purpose = |world: &mut World| {
        Arc::make_mut(world.gathered.purpose.as_mut().unwrap()).window = at_noon;
    };
    assert_eq!(judged(purpose), Reason::PurposeNotAdmitted);
    assert_eq!(judged(|world| world.link(1).window = at_noon), Reason::DelegationExpired);
    let from_noon = window(Some("2026-01-05T12:00:00Z"), None);
    let text = "forbid(principal, action, resource);";
    assert_eq!(
        judged(|world| world.gathered.policies.push(policy(text, from_noon))),
        Reason::PolicyDenied
    );
}

/// Spending by others since then doesn't end a permission. Only its own spending can.
#[test]
fn only_what_it_spent_itself_is_counted() {
    let counted = |limit: serde_json::Value, spent: i64| {
        judged(move |world| {
            world.link(1).bounds = bounds(limit);
            world.spent = Some(spent);
        })
    };
    let uses = |count: u32| json!({"max_uses": {"count": count, "window_seconds": 86_400}});
    let total =
        |amount: &str| json!({"max_total_amount": {"amount": amount, "window_seconds": 60}});
    assert_eq!(counted(uses(1), 1), Reason::PermissionGranted);
    assert_eq!(counted(uses(1), 500), Reason::PermissionGranted);
    assert_eq!(counted(total("100"), 1_000_000), Reason::PermissionGranted);
    assert_eq!(counted(total("99.99"), 0), Reason::ConstraintExceeded, "alone it is too much");
}

/// The grant of the resource. A permission by a `uses` row requires it.
fn grant() -> Arc<Grant> {
    Arc::new(Grant {
        id: "grant-3".into(),
        resource_id: "res-1".into(),
        grantee_id: SUBJECT.into(),
        grantee_kind: "agent".to_owned(),
        access_level: AccessLevel::Execute,
    })
}

/// Another authority that would permit the request now doesn't count.
#[test]
fn it_stands_and_falls_with_the_authority_that_was_used() {
    let mut world = World::sound();
    world.draft.delegation_id = None;
    let used = world.decide().authority.unwrap();
    assert_eq!((used.kind, used.id.as_str()), (AuthorityKind::Delegation, "del-1"));
    world.uses("uses-1", Used::Action("payment.*".parse().unwrap()));
    world.gathered.grants.push(grant());
    world.link(0).bounds = bounds(json!({"max_amount": "5"}));
    assert_eq!(world.decide().reason_code, Reason::PermissionGranted, "by the uses row");
    assert_eq!(again(&world, &used), Reason::ConstraintExceeded);
    world.gathered.delegations.clear();
    assert_eq!(again(&world, &used), Reason::DelegationUnknown);

    let mut world = World::sound();
    world.draft.delegation_id = None;
    world.gathered.delegations.clear();
    world.uses("uses-1", Used::Action("payment.execute".parse().unwrap()));
    world.gathered.grants.push(grant());
    let used = world.decide().authority.unwrap();
    assert_eq!((used.kind, used.id.as_str()), (AuthorityKind::Uses, "uses-1"));
    assert_eq!(again(&world, &used), Reason::PermissionGranted);
    world.gathered.uses.clear();
    world.uses("uses-2", Used::Action("payment.execute".parse().unwrap()));
    assert_eq!(world.decide().reason_code, Reason::PermissionGranted, "by the other row");
    assert_eq!(again(&world, &used), Reason::PermissionMissing);
}

/// The approval that a permission used still suffices after the approval has expired, but not if
/// more approvers are required now.
#[test]
fn the_approval_that_it_spent_is_its_own() {
    let given = |by: &str| Signature {
        by: by.to_owned(),
        role: "approver".to_owned(),
        own_interest: false,
        at: Some(now()),
    };
    let mut world = World::sound();
    let holds = |count: u32| {
        let text = format!(
            "@decision(\"require_approval\") @approvals(\"{count}\") forbid(principal, action, resource);"
        );
        policy(&text, Window::default())
    };
    world.gathered.policies.push(holds(1));
    world.draft.approval_id = Some("approval-1".into());
    world.approval = Some(Approval {
        id: "approval-1".into(),
        state: ApprovalState::Approved,
        same_question: true,
        same_subject: true,
        given: vec![given("ann")],
        expires_at: now() + TimeDelta::hours(1),
    });
    let used = world.decide().authority.unwrap();
    assert_eq!(again(&world, &used), Reason::PermissionGranted);
    world.gathered.policies = vec![holds(2)];
    assert_eq!(again(&world, &used), Reason::ApprovalThresholdBreach);
    world.gathered.policies = vec![holds(1)];
    world.approval.as_mut().unwrap().given.clear();
    assert_eq!(again(&world, &used), Reason::ApprovalThresholdBreach, "its act no longer counts");
}

#[test]
fn the_next_turn_is_the_first_end_or_beginning_of_anything() {
    let mut world = World::sound();
    assert_eq!(next_turn(&world.gathered, now()), None);
    let (soon, late) = (now() + TimeDelta::minutes(1), now() + TimeDelta::hours(1));
    world.link(1).window.until = Some(late);
    assert_eq!(next_turn(&world.gathered, now()), Some(late));
    let text = "forbid(principal, action, resource);";
    let begins = Window { from: Some(soon), until: None };
    world.gathered.policies.push(policy(text, begins));
    assert_eq!(next_turn(&world.gathered, now()), Some(soon));
    assert_eq!(next_turn(&world.gathered, soon), Some(late));
    assert_eq!(next_turn(&world.gathered, late), None);
}

#[test]
fn facts_differ_by_all_but_their_revision_and_reality() {
    let before = World::sound().gathered;
    let mut present = before.clone();
    present.revision += 1;
    Arc::make_mut(&mut present.reality).drifts.clear();
    assert!(is_same(&before, &present));
    let mut world = World::sound();
    world.link(1).bounds = bounds(json!({"max_amount": "99"}));
    assert!(!is_same(&before, &world.gathered));
    present.policies.push(policy("forbid(principal, action, resource);", Window::default()));
    assert!(!is_same(&before, &present));
}
