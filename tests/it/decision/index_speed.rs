//! Checks that a decision over two hundred policies, of which three match, takes at most 1.5 times
//! as long as one over the three alone.

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use authority_decision::{
    CompiledPolicy, Draft, Facts, Gathered, Pattern, PolicyIndex, PolicyKeys, PolicyReference,
    Request, decide,
    facts::*,
    levels::{Decision, PrincipalClass},
    moment::Window,
};
use serde_json::json;

use super::{
    permitted::permitted,
    worlds::{SUBJECT, TENANT, noonish},
};

const ACTION: &str = "payment.execute";

fn policy(number: usize, action: Option<&str>, row: Option<&str>) -> Arc<CompiledPolicy> {
    let scope =
        action.map_or("action".to_owned(), |name| format!("action in Svc::Action::\"{name}\""));
    let text = format!(
        "@id(\"p-{number}\") forbid(principal, {scope}, resource) when \
         {{ context has amount && context.amount.greaterThan(decimal(\"{number}000.0\")) }};"
    );
    let reference = PolicyReference {
        id: format!("pol-{number:03}").into(),
        version: 1,
        sha256: String::new(),
        applies_to: row.map(|row| row.parse().unwrap()).into_iter().collect(),
        effective: Window::default(),
    };
    CompiledPolicy::compile(reference, &text).unwrap().into()
}

/// Returns the three policies that match, and `others` that can't match, each narrowed in another
/// way.
fn policies(others: usize) -> Vec<Arc<CompiledPolicy>> {
    let mut policies = vec![
        policy(900, Some("payment"), None),
        policy(901, None, Some("action:payment.*")),
        policy(902, None, None),
    ];
    policies.extend((0..others).map(|number| match number % 5 {
        0 => policy(number + 1, Some("report"), None),
        1 => policy(number + 1, None, Some("action:report.*")),
        2 => policy(number + 1, None, Some("purpose:refunds")),
        3 => policy(number + 1, Some("payment.refund"), Some("action:payment.*")),
        _ => policy(number + 1, None, Some("principal_class:human")),
    }));
    policies
}

fn gather(index: &PolicyIndex) -> Facts {
    let keys = PolicyKeys {
        action: ACTION,
        purpose: Some("payroll"),
        principal_class: Some(PrincipalClass::Agent),
        resource_kind: None,
    };
    let purpose = Purpose {
        id: "purpose-1".into(),
        slug: "payroll".to_owned(),
        active: true,
        allowed_actions: vec![Pattern::All],
        principal_classes: Vec::new(),
        jurisdictions: Vec::new(),
        window: Window::default(),
    };
    Facts::new(Arc::new(Gathered {
        purpose: Some(purpose.into()),
        policies: index.candidates(keys).cloned().collect(),
        ..permitted()
    }))
}

/// Returns the shortest of many short runs, because other load on the machine can only add time.
fn least(index: &PolicyIndex, request: &Request) -> Duration {
    let run = || {
        let start = Instant::now();
        for _ in 0..20 {
            black_box(decide(request, &gather(index), noonish()));
        }
        start.elapsed()
    };
    (0..30).map(|_| run()).min().unwrap()
}

#[test]
fn two_hundred_policies_cost_little_more_than_three() {
    let request = Request::new(Draft {
        tenant_id: TENANT.into(),
        subject: SUBJECT.into(),
        action: ACTION.to_owned(),
        purpose: Some("payroll".to_owned()),
        context: json!({"amount": 10}).as_object().unwrap().clone(),
        ..Draft::default()
    })
    .unwrap();
    let (few, many) = (PolicyIndex::new(policies(0)), PolicyIndex::new(policies(197)));
    assert_eq!((few.len(), many.len()), (3, 200));
    let facts = gather(&many);
    assert_eq!(facts.gathered.policies.len(), 3);
    assert_eq!(decide(&request, &facts, noonish()).decision, Decision::AllowWithConstraints);
    // Measured again if the machine was too busy for a good run of either.
    let ratio = || least(&many, &request).as_secs_f64() / least(&few, &request).as_secs_f64();
    let ratios: Vec<f64> = std::iter::repeat_with(ratio).take(5).collect();
    let best = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(best <= 1.5, "{ratios:?}");
}
