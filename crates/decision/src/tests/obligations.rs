//! Tests requests that declare the obligations that their caller supports.

use super::{
    approvals::{approval, drift, drifted, risky},
    *,
};
use crate::{
    facts::records::Declined,
    levels::{RiskTier, RuntimeEffect},
    reason::Stage,
    verdict::Claims,
};

/// Adds a policy with these obligations.
fn oblige(world: &mut World, names: &str) {
    let reference = super::super::PolicyReference {
        id: "policy-1".into(),
        version: 1,
        sha256: String::new(),
        applies_to: Vec::new(),
        effective: Window::default(),
    };
    let text = format!("@obligation(\"{names}\") permit(principal, action, resource);");
    let compiled = super::super::CompiledPolicy::compile(reference, &text).unwrap();
    world.gathered.policies.push(compiled.into());
}

/// Returns the world, with this list in its request.
fn supporting(mut world: World, names: &[&str]) -> World {
    let names = names.iter().map(|name| (*name).to_owned());
    world.draft.supported_obligations = Some(names.collect());
    world
}

fn obliged() -> World {
    let mut world = World::sound();
    oblige(&mut world, "mask.pii,log.full");
    world
}

#[test]
fn an_obligation_outside_the_list_is_denied() {
    let verdict = obliged().decide();
    assert_eq!(verdict.reason_code, Reason::PermissionGranted);
    assert_eq!(verdict.obligations, ["audit.emit", "mask.pii", "log.full"]);
    for some in [&[][..], &["mask.pii"], &["log.full", "mask"]] {
        let verdict = supporting(obliged(), some).decide();
        assert_eq!(verdict.decision, Decision::Deny, "{some:?}");
        assert_eq!(verdict.reasons, [Reason::ObligationUnsupported]);
        assert!(verdict.obligations.is_empty() && verdict.authority.is_none());
        assert_eq!((verdict.claims, verdict.valid_until), (Claims::default(), None));
    }
    let verdict = supporting(obliged(), &["other", "mask.pii", "log.full"]).decide();
    assert_eq!(verdict.reason_code, Reason::PermissionGranted);
    assert_eq!(verdict.obligations, ["audit.emit", "mask.pii", "log.full"]);
}

#[test]
fn what_requires_nothing_of_the_caller_is_supported() {
    let mut world = supporting(World::sound(), &[]);
    assert_eq!(world.decide().obligations, ["audit.emit"]);
    drift(&mut world, drifted(RuntimeEffect::ContinueWithWarning));
    oblige(&mut world, "audit.emit,reality.overridden");
    let verdict = world.decide();
    assert_eq!(verdict.reason_code, Reason::PermissionGranted);
    assert_eq!(verdict.obligations, ["audit.emit", "reality.overridden", "reality.warn"]);
}

/// An approval could not change the denial. A denial of an earlier stage stays.
#[test]
fn it_replaces_a_hold_but_no_denial() {
    let reason = |tier, change: fn(&mut World)| {
        let mut world = supporting(risky(tier, None), &[]);
        oblige(&mut world, "mask.pii");
        change(&mut world);
        world.decide().reason_code
    };
    assert_eq!(reason(RiskTier::High, |_| ()), Reason::ObligationUnsupported);
    assert_eq!(reason(RiskTier::Prohibited, |_| ()), Reason::RiskProhibited);
    let other = |world: &mut World| world.draft.action = "report.read".to_owned();
    assert_eq!(reason(RiskTier::High, other), Reason::PermissionMissing);
}

/// A cited approval is not used up, and a bound is not counted.
#[test]
fn it_claims_nothing() {
    let mut world = supporting(risky(RiskTier::High, None), &["mask.pii"]);
    let max_uses = super::super::bounds::MaxUses { count: 5, window_seconds: 60 };
    world.link(0).bounds.max_uses = Some(max_uses);
    world.draft.approval_id = Some("approval-1".into());
    world.approval = Some(approval(&[("ann", "legal"), ("bob", "approver")]));
    assert!(!world.decide().claims.is_empty());
    oblige(&mut world, "log.full");
    let verdict = world.decide();
    assert_eq!(verdict.reason_code, Reason::ObligationUnsupported);
    assert!(verdict.claims.is_empty());
}

#[test]
fn it_comes_before_a_decline() {
    let mut world = supporting(risky(RiskTier::High, None), &[]);
    oblige(&mut world, "mask.pii");
    let mut facts = world.facts();
    let at = moment("2026-01-05T10:20:00Z");
    facts.declined = Some(Declined { approval_id: "approval-9".into(), at });
    let request = Request::new(world.draft.clone()).unwrap();
    assert_eq!(decide(&request, &facts, now()).reason_code, Reason::ObligationUnsupported);
}

#[test]
fn explain_names_each_obligation() {
    let mut world = supporting(obliged(), &["log.full"]);
    oblige(&mut world, "mask.pii,notify.owner");
    world.draft.explain = true;
    let trace = world.decide().trace.unwrap();
    let decision = trace.last().unwrap();
    assert_eq!(decision.stage, Stage::Decision);
    assert_eq!(decision.reason_code, Some(Reason::ObligationUnsupported));
    let named: Vec<_> = decision.steps.iter().map(|step| (&*step.kind, &*step.id)).collect();
    assert_eq!(named, [("obligation", "mask.pii"), ("obligation", "notify.owner")]);
}
