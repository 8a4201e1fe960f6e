//! Tests the holds and the approvals that meet them.

use super::*;
use crate::{
    CompiledPolicy, PolicyReference,
    facts::reality::Drift,
    levels::{ApprovalState, OversightMode, RiskTier, RuntimeEffect},
    request::draft::ActionRiskClassification,
    rules::needed::ApprovalsNeeded,
};

fn signed(people: &[(&str, &str)]) -> Vec<Signature> {
    let sign = |(by, role): &(&str, &str)| Signature {
        by: (*by).to_owned(),
        role: (*role).to_owned(),
        own_interest: false,
        at: Some(now()),
    };
    people.iter().map(sign).collect()
}

pub(super) fn approval(people: &[(&str, &str)]) -> Approval {
    Approval {
        id: "approval-1".into(),
        state: ApprovalState::Approved,
        same_question: true,
        same_subject: true,
        given: signed(people),
        expires_at: moment("2026-01-06T00:00:00Z"),
    }
}

pub(super) fn risky(tier: RiskTier, mode: Option<OversightMode>) -> World {
    let mut world = World::sound();
    let (risk_tier, required_oversight_mode) = (Some(tier), mode);
    world.draft.action_risk_classification =
        Some(ActionRiskClassification { risk_tier, required_oversight_mode });
    world
}

fn outcome(world: &World) -> (Reason, Option<ApprovalsNeeded>) {
    let verdict = world.decide();
    (verdict.reason_code, verdict.approvals_needed)
}

fn held(count: u32, roles: &[&str]) -> (Reason, Option<ApprovalsNeeded>) {
    let roles = roles.iter().map(|role| (*role).to_owned()).collect();
    (Reason::OversightRequired, Some(ApprovalsNeeded { count, roles }))
}

const GRANTED: (Reason, Option<ApprovalsNeeded>) = (Reason::PermissionGranted, None);

#[test]
fn an_approval_meets_the_gate() {
    let mut world = risky(RiskTier::High, Some(OversightMode::TwoPersonWithLegal));
    assert_eq!(outcome(&world), held(2, &["legal"]));
    world.draft.approval_id = Some("approval-1".into());
    assert_eq!(outcome(&world), held(2, &["legal"]), "the cited approval does not resolve");
    let mut cite = |approval: Approval| {
        world.approval = Some(approval);
        outcome(&world)
    };
    let both = [("ann", "legal"), ("bob", "approver")];
    assert_eq!(cite(approval(&both)), GRANTED);
    assert_eq!(cite(approval(&[("ann", "approver"), ("bob", "approver")])), held(2, &["legal"]));
    assert_eq!(cite(approval(&[("ann", "legal"), ("ann", "approver")])), held(2, &["legal"]));
    assert_eq!(
        cite(Approval { state: ApprovalState::Used, ..approval(&both) }),
        held(2, &["legal"])
    );
    assert_eq!(cite(Approval { same_question: false, ..approval(&both) }), held(2, &["legal"]));
    assert_eq!(cite(Approval { expires_at: now(), ..approval(&both) }), held(2, &["legal"]));
    assert_eq!(cite(Approval { id: "approval-2".into(), ..approval(&both) }), held(2, &["legal"]));
}

#[test]
fn an_allow_claims_the_approval_that_it_cites() {
    let mut world = risky(RiskTier::High, None);
    world.draft.approval_id = Some("approval-1".into());
    world.approval = Some(approval(&[("ann", "legal"), ("bob", "approver")]));
    assert_eq!(world.decide().claims.approval_id.as_deref(), Some("approval-1"));
    world.approval = Some(approval(&[("ann", "legal")]));
    assert_eq!(world.decide().claims.approval_id, None);
}

#[test]
fn an_approval_that_nothing_needs_is_not_spent() {
    let mut world = World::sound();
    world.draft.approval_id = Some("approval-1".into());
    world.approval = Some(approval(&[("ann", "legal"), ("bob", "approver")]));
    let verdict = world.decide();
    assert!(verdict.decision.permits());
    assert_eq!(verdict.claims.approval_id, None);
}

#[test]
fn a_standing_approval_is_the_delegations_own() {
    let mut world = risky(RiskTier::High, Some(OversightMode::Delegated));
    world.link(1).standing = signed(&[("ann", "legal"), ("bob", "approver")]);
    assert_eq!(outcome(&world), held(2, &[]), "never inherited by a child");
    world.link(0).standing = signed(&[("ann", "legal")]);
    assert_eq!(outcome(&world), held(2, &[]));
    world.link(0).standing = signed(&[("ann", "legal"), ("bob", "approver")]);
    assert_eq!(outcome(&world), GRANTED);
    assert_eq!(world.decide().claims.approval_id, None);
    world.link(1).standing.clear();
    world.link(1).needs_standing_approval = true;
    assert_eq!(outcome(&world), held(2, &[]), "an ancestor lacks its standing approval");
}

#[test]
fn a_delegation_that_needs_a_standing_approval_holds_without() {
    let mut world = World::sound();
    world.link(0).needs_standing_approval = true;
    assert_eq!(outcome(&world), held(1, &[]));
    world.link(0).standing = signed(&[("ann", "approver")]);
    assert_eq!(outcome(&world), GRANTED);
}

#[test]
fn nothing_declared_passes_unless_the_tenant_wants_it() {
    let demand = |w: &mut World| {
        Arc::make_mut(w.gathered.tenant.as_mut().unwrap()).require_declaration = true;
    };
    assert_eq!(code(demand), Reason::DeclarationRequired);
}

pub(super) fn drifted(effect: RuntimeEffect) -> Drift {
    Drift {
        id: "drift-1".into(),
        drift_type: "stable_drift".to_owned(),
        actor_id: None,
        action: None,
        effect,
        obligations: Vec::new(),
        since: moment("2026-01-05T10:20:00Z"),
        until_fresh: Vec::new(),
    }
}

pub(super) fn drift(world: &mut World, drift: Drift) {
    Arc::make_mut(&mut world.gathered.reality).drifts.push(drift.into());
}

#[test]
fn no_approval_meets_a_revalidation() {
    let mut world = risky(RiskTier::High, None);
    drift(&mut world, drifted(RuntimeEffect::RequireHumanReview));
    let verdict = world.decide();
    assert_eq!(verdict.reasons, [Reason::RealityReviewRequired, Reason::OversightRequired]);
    world.draft.approval_id = Some("approval-1".into());
    world.approval = Some(approval(&[("ann", "legal"), ("bob", "approver")]));
    assert_eq!(outcome(&world), GRANTED);
    drift(&mut world, drifted(RuntimeEffect::RequireRevalidation));
    assert_eq!(outcome(&world), (Reason::RealityRevalidationRequired, None));
}

/// People who approved before the drift began have not reviewed it.
#[test]
fn a_review_is_met_only_by_acts_later_than_what_they_review() {
    let mut world = World::sound();
    drift(&mut world, drifted(RuntimeEffect::RequireHumanReview));
    world.draft.approval_id = Some("approval-1".into());
    let acted = |world: &mut World, at: &[Option<&str>]| {
        let people = [("ann", "approver"), ("bob", "approver")];
        let mut approval = approval(&people[..at.len()]);
        for (signature, at) in approval.given.iter_mut().zip(at) {
            signature.at = at.map(moment);
        }
        world.approval = Some(approval);
        outcome(world)
    };
    let unmet = held(1, &[]).1;
    let review = (Reason::RealityReviewRequired, unmet);
    assert_eq!(acted(&mut world, &[Some("2026-01-05T10:20:00.000001Z")]), GRANTED);
    assert_eq!(acted(&mut world, &[Some("2026-01-05T10:20:00Z")]), review);
    assert_eq!(acted(&mut world, &[None]), review);
    // A later approval by a single person suffices, if there are enough people.
    let one = [Some("2026-01-05T10:19:00Z"), Some("2026-01-05T10:25:00Z")];
    assert_eq!(acted(&mut world, &one), GRANTED);
}

#[test]
fn one_approval_serves_all_holds() {
    let text = r#"@decision("require_approval") @approvals("3") @obligation("review.after")
        forbid(principal, action, resource);"#;
    let reference = PolicyReference {
        id: "pol-1".into(),
        version: 1,
        sha256: String::new(),
        applies_to: Vec::new(),
        effective: Window::default(),
    };
    let mut world = risky(RiskTier::High, Some(OversightMode::TwoPersonWithLegal));
    world.gathered.policies = vec![CompiledPolicy::compile(reference, text).unwrap().into()];
    let verdict = world.decide();
    assert_eq!(verdict.reasons, [Reason::ApprovalThresholdBreach, Reason::OversightRequired]);
    let needed = verdict.approvals_needed.unwrap();
    assert_eq!((needed.count, needed.roles), (3, vec!["legal".to_owned()]));
    world.draft.approval_id = Some("approval-1".into());
    world.approval = Some(approval(&[("ann", "legal"), ("bob", "admin"), ("cy", "approver")]));
    assert_eq!(world.decide().obligations, ["audit.emit", "review.after"]);
}

/// An approval in one's own interest counts if one approval is needed, but not if two are needed.
#[test]
fn own_interest_counts_where_one_is_needed() {
    let own = |people: &[(&str, &str)]| {
        let mut approval = approval(people);
        approval.given.iter_mut().for_each(|act| act.own_interest = act.by == "ann");
        Some(approval)
    };
    let mut world = risky(RiskTier::Minimal, Some(OversightMode::SingleApprover));
    world.draft.approval_id = Some("approval-1".into());
    world.approval = own(&[("ann", "approver")]);
    assert_eq!(outcome(&world), GRANTED);
    let two = risky(RiskTier::Minimal, Some(OversightMode::TwoPersonWithLegal));
    world.draft.action_risk_classification = two.draft.action_risk_classification;
    let (ann, bob) = (("ann", "legal"), ("bob", "approver"));
    for people in [vec![ann, bob], vec![ann, bob, ("cy", "approver")]] {
        world.approval = own(&people);
        assert_eq!(outcome(&world), held(2, &["legal"]));
    }
    world.approval = own(&[ann, bob, ("cy", "legal")]);
    assert_eq!(outcome(&world), GRANTED);
}
