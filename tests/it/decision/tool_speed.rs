//! Checks that a decision with three hundred tools for an action takes as long as one with a single
//! tool.

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use authority_decision::{
    Draft, Facts, Gathered, JoinedTerms, Pattern, Request, decide,
    facts::*,
    levels::{AccessLevel, Decision, EffectClass, Reversibility, RiskTier},
    request::{ActionDeclaration, ActionRiskClassification},
};
use authority_evidence::PreparedFacts;

use super::{
    permitted::permitted,
    templates,
    worlds::{SUBJECT, TENANT, noonish},
};

/// Returns this many tools of all kinds, none of which requires an approval.
fn tools(count: usize) -> Vec<Tool> {
    let kind = |number: usize| Tool {
        id: format!("svc:ent:t:tool:{number:032x}").into(),
        live: true,
        workspace_id: None,
        actions: vec![Pattern::All],
        requires: vec!["amount".to_owned()],
        access_level: Some(AccessLevel::ALL[number % 3]),
        action_declaration: Some(ActionDeclaration {
            effect_class: Some(EffectClass::ALL[number % 5]),
            reversibility: Some(Reversibility::Reversible),
            rollback_available: Some(true),
        }),
        input: None,
        definition: None,
        action_risk_classification: Some(ActionRiskClassification {
            risk_tier: Some(RiskTier::ALL[number % 2]),
            required_oversight_mode: None,
        }),
    };
    (0..count).map(kind).collect()
}

/// Three hundred tools have ten different declarations, which a policy reads. Only evaluating the
/// ten declarations may add time.
#[test]
fn a_policy_costs_by_what_is_declared_and_not_by_the_tools() {
    let text = r#"forbid(principal, action, resource)
        when { context has effect_class && context.effect_class == "safety_critical"
               && context has risk_tier && context.risk_tier == "high" };"#;
    let with_policy = |tools: usize| {
        let policies = vec![templates::compile(text).unwrap()];
        Facts::new(Gathered { policies, ..facts(tools) }.into())
    };
    let (ten, many) = (with_policy(10), with_policy(300));
    let request = request();
    let deciding = |facts: &Facts| least(|| drop(black_box(decide(&request, facts, noonish()))));
    let ratios: Vec<f64> =
        (0..5).map(|_| deciding(&many).as_secs_f64() / deciding(&ten).as_secs_f64()).collect();
    let alone = deciding(&with_policy(1)).as_secs_f64();
    eprintln!("{ratios:?}; of one: {}", deciding(&ten).as_secs_f64() / alone);
    assert!(ratios.iter().copied().fold(f64::INFINITY, f64::min) <= 1.5, "{ratios:?}");
}

fn facts(count: usize) -> Gathered {
    let joined_terms = JoinedTerms::all(&tools(count)).map(Arc::new);
    Gathered { joined_terms, ..permitted() }
}

fn request() -> Request {
    Request::new(Draft {
        tenant_id: TENANT.into(),
        subject: SUBJECT.into(),
        action: "payment.execute".to_owned(),
        context: serde_json::json!({"amount": 10}).as_object().unwrap().clone(),
        ..Draft::default()
    })
    .unwrap()
}

/// Returns the duration of a run: the shortest of many short series, because other load on the
/// machine can only add time.
pub(super) fn least(run: impl Fn()) -> Duration {
    let timed = || {
        let start = Instant::now();
        (0..20).for_each(|_| run());
        start.elapsed() / 20
    };
    (0..40).map(|_| timed()).min().unwrap()
}

#[test]
fn three_hundred_tools_cost_what_one_costs() {
    let request = request();
    let (one, many) = (facts(1), facts(300));
    let decided = decide(&request, &Facts::new(many.clone().into()), noonish());
    assert_eq!(decided.decision, Decision::AllowWithConstraints);
    let (one_ready, many_ready) = (Facts::new(one.clone().into()), Facts::new(many.clone().into()));
    let deciding = |facts: &Facts| least(|| drop(black_box(decide(&request, facts, noonish()))));
    let sealing = |facts: &Gathered| {
        least(|| drop(black_box(PreparedFacts::new(facts.clone(), &request).unwrap())))
    };
    // Measured again if the machine was too busy for a good run of either.
    let ratio = |one: Duration, many: Duration| many.as_secs_f64() / one.as_secs_f64();
    let decide: Vec<f64> =
        (0..5).map(|_| ratio(deciding(&one_ready), deciding(&many_ready))).collect();
    let seal: Vec<f64> = (0..5).map(|_| ratio(sealing(&one), sealing(&many))).collect();
    eprintln!("deciding {decide:?}, sealing {seal:?}");
    let best = |ratios: &[f64]| ratios.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(best(&decide) <= 1.5, "deciding {decide:?}");
    assert!(best(&seal) <= 2.0, "sealing {seal:?}");
}
