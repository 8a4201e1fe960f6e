//! Observing versions of policies change no verdict, and are compared with it.

use proptest::prelude::*;

use super::*;
use crate::{
    CompiledPolicy, FactsDocument, PolicyReference, decide_and_observe, observe,
    trace::{self, Observed},
};

const FORBID: &str = "@id(\"never\") forbid (principal, action, resource);";
const HOLD: &str =
    "@id(\"ask\") @decision(\"require_approval\") forbid (principal, action, resource);";
const OBLIGE: &str = "@obligation(\"audit.extra\") permit (principal, action, resource);";
const NOTHING: &str = "forbid (principal, action == Svc::Action::\"other\", resource);";
/// Fails: the context has no such field, and the text does not test for it.
const FAILING: &str = "forbid (principal, action, resource) when { context.input.absent == 1 };";

fn policy(id: &str, version: i64, text: &str) -> Arc<CompiledPolicy> {
    let reference = PolicyReference {
        id: id.into(),
        version,
        sha256: String::new(),
        applies_to: Vec::new(),
        effective: Window::default(),
    };
    Arc::new(CompiledPolicy::compile(reference, text).unwrap())
}

fn world(active: &[(&str, &str)], observing: &[(&str, &str)]) -> World {
    let mut world = World::sound();
    let policies = |version, of: &[(&str, &str)]| -> Vec<_> {
        of.iter().map(|(id, text)| policy(id, version, text)).collect()
    };
    world.gathered.policies = policies(1, active);
    world.gathered.observing = policies(2, observing);
    world
}

fn observed(world: &World) -> Vec<Observed> {
    let request = Request::new(world.draft.clone()).unwrap();
    let (facts, verdict) = (world.facts(), world.decide());
    observe(&request, &facts, now(), &verdict)
}

/// Returns the outcome of the only observing version, and whether it would change the decision.
#[track_caller]
fn outcome(active: &[(&str, &str)], observing: (&str, &str)) -> (Decision, Reason, bool) {
    let found = observed(&world(active, &[observing]));
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((one.policy_id.as_str(), one.version), (observing.0, 2));
    (one.decision, one.reason_code, one.would_change)
}

#[test]
fn a_version_takes_the_place_of_the_active_version_or_joins_the_others() {
    let (allow, granted) = (Decision::AllowWithConstraints, Reason::PermissionGranted);
    let denied = (Decision::Deny, Reason::PolicyDenied);
    assert_eq!(outcome(&[], ("a", FORBID)), (denied.0, denied.1, true));
    assert_eq!(outcome(&[("a", FORBID)], ("a", NOTHING)), (allow, granted, true));
    assert_eq!(outcome(&[("a", FORBID)], ("b", NOTHING)), (denied.0, denied.1, false));
    assert_eq!(outcome(&[("a", NOTHING)], ("a", NOTHING)), (allow, granted, false));
    assert_eq!(outcome(&[("b", FORBID)], ("a", HOLD)), (denied.0, denied.1, false));
    let hold = outcome(&[], ("a", HOLD));
    assert_eq!((hold.0, hold.2), (Decision::RequireApproval, true));
    // Another obligation is a change for the caller.
    assert_eq!(outcome(&[], ("a", OBLIGE)), (allow, granted, true));
    assert_eq!(outcome(&[], ("a", FAILING)), (Decision::Deny, Reason::RuleError, true));
}

#[test]
fn several_versions_are_observed_one_by_one() {
    let found = observed(&world(&[], &[("a", FORBID), ("b", NOTHING), ("c", HOLD)]));
    let decisions: Vec<_> =
        found.iter().map(|one| (one.policy_id.as_str(), one.decision, one.would_change)).collect();
    let expected = [
        ("a", Decision::Deny, true),
        ("b", Decision::AllowWithConstraints, false),
        ("c", Decision::RequireApproval, true),
    ];
    assert_eq!(decisions, expected);
}

#[test]
fn a_version_outside_its_times_would_change_nothing() {
    let mut world = world(&[], &[("a", FORBID)]);
    let ended = window(None, Some("2026-01-05T10:30:00Z"));
    world.gathered.observing = vec![Arc::new(policy("a", 2, FORBID).applied_to(Vec::new(), ended))];
    assert!(!observed(&world)[0].would_change);
}

#[test]
fn the_trace_has_a_passing_step_for_each_version_with_its_deciding_statements() {
    let mut world = world(&[("a", NOTHING)], &[("a", FORBID), ("b", HOLD)]);
    world.draft.explain = true;
    let request = Request::new(world.draft.clone()).unwrap();
    let verdict = decide_and_observe(&request, &world.facts(), now());
    assert_eq!(verdict.reason_code, Reason::PermissionGranted);
    let steps: Vec<_> = verdict.trace.iter().flatten().flat_map(|stage| &stage.steps).collect();
    let steps: Vec<_> = steps.into_iter().filter(|step| step.kind == "observed").collect();
    let [one, other] = &steps[..] else { panic!("{steps:?}") };
    for (step, id, statement) in [(one, "a", "never"), (other, "b", "ask")] {
        assert_eq!((step.id.as_str(), step.outcome), (id, trace::Outcome::Pass));
        assert_eq!(step.reason_code, None);
        let statements = &step.observed.as_ref().unwrap().statements;
        let [found] = &statements[..] else { panic!("{statements:?}") };
        assert_eq!((found.policy_id.as_str(), found.id.as_str()), (id, statement));
    }
    assert!(one.detail.contains("would deny it: policy_denied (never)"), "{}", one.detail);
}

/// Later versions of the service may no longer read a text that observed. The decision did not depend
/// on it.
#[test]
fn a_version_that_can_no_longer_be_read_is_not_compared_and_changes_no_facts() {
    let world = world(&[("a", NOTHING)], &[("a", FORBID), ("b", HOLD)]);
    let sealed = serde_json::to_string(&world.facts()).unwrap();
    let rebuilt = |broken: (&str, i64)| {
        let document: FactsDocument = serde_json::from_str(&sealed).unwrap();
        let policy = |reference: &PolicyReference| {
            let named = (reference.id.as_str(), reference.version);
            let text = if named == ("b", 2) { HOLD } else { NOTHING };
            let text = if named == broken { "permit nothing" } else { text };
            CompiledPolicy::compile(reference.clone(), text).map(Arc::new)
        };
        document.rebuild_with(policy, |_| unreachable!("the world has no schemas"))
    };
    let facts = rebuilt(("a", 2)).unwrap();
    assert_eq!(serde_json::to_string(&facts).unwrap(), sealed);
    let request = Request::new(world.draft.clone()).unwrap();
    let found = observe(&request, &facts, now(), &world.decide());
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((one.policy_id.as_str(), one.decision), ("b", Decision::RequireApproval));
    // The decision depends on an active version.
    assert!(rebuilt(("a", 1)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// With and without observing versions, a decision is the same, and so is its trace.
    #[test]
    fn an_observing_version_changes_no_verdict(
        active in proptest::sample::subsequence(vec![FORBID, HOLD, OBLIGE, NOTHING, FAILING], 0..=3),
        observing in proptest::sample::subsequence(vec![FORBID, HOLD, OBLIGE, NOTHING, FAILING], 1..=3),
        shift in 0..3_usize,
        explain in any::<bool>(),
        spoiled in any::<bool>(),
    ) {
        let ids = ["a", "b", "c", "d", "e"];
        let named = |texts: &[&'static str], from: usize| -> Vec<_> {
            texts.iter().enumerate().map(|(place, text)| (ids[place + from], *text)).collect()
        };
        let (active, observing) = (named(&active, 0), named(&observing, shift));
        let mut plain = world(&active, &[]);
        plain.draft.explain = explain;
        if spoiled {
            plain.gathered.grants.clear();
        }
        let mut observed = world(&active, &observing);
        observed.draft = plain.draft.clone();
        observed.gathered.grants.clone_from(&plain.gathered.grants);
        prop_assert_eq!(plain.decide(), observed.decide());
        // What is shown afterwards differs only in the trace.
        let request = Request::new(observed.draft.clone()).unwrap();
        let shown = decide_and_observe(&request, &observed.facts(), now());
        prop_assert_eq!(Verdict { trace: None, ..shown }, Verdict { trace: None, ..plain.decide() });
    }
}
