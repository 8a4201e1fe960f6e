//! Checks that reality adds less than 2 µs to a decision if no anchor grounds the action, and less
//! than 10 µs if five anchors do.

use std::{hint::black_box, sync::Arc, time::Duration};

use authority_decision::{
    Decision, Draft, Facts, Gathered, Request, decide,
    levels::RuntimeEffect,
    reality::{Anchor, AnchorType, FreshnessContract, Reality, Snapshot},
};
use chrono::TimeDelta;

use super::{
    permitted::permitted,
    tool_speed::least,
    worlds::{SUBJECT, TENANT, noonish},
};

/// The factor by which the limits are larger in a build without optimization.
const SLOWER: u32 = if cfg!(debug_assertions) { 30 } else { 1 };

fn anchor(number: usize, actions: &str) -> Arc<Anchor> {
    Arc::new(Anchor {
        id: format!("svc:ent:t:reality_anchor:{number:032x}").into(),
        version: 3,
        anchor_type: AnchorType::FinancialContext,
        active: true,
        grounds_actions: vec![actions.parse().unwrap(), "invoice.settle".parse().unwrap()],
        grounds_profiles: vec!["payroll".to_owned()],
        freshness: Some(FreshnessContract {
            max_staleness_seconds: 3600,
            expected_refresh_seconds: Some(900),
            stale_runtime_effect: Some(RuntimeEffect::Deny),
            missing_runtime_effect: None,
        }),
        unreadable: false,
        changed_at: noonish() - TimeDelta::days(1),
        newest: Some(Snapshot {
            id: format!("svc:ent:t:reality_snapshot:{number:032x}").into(),
            sampled_at: noonish() - TimeDelta::seconds(60),
            valid_until: Some(noonish() + TimeDelta::hours(1)),
            content_hash: format!("sha256:{number:064x}"),
            contested: false,
        }),
    })
}

fn facts(anchors: Vec<Arc<Anchor>>) -> Facts {
    let reality = Reality { anchors, ..Reality::default() }.into();
    Facts::new(Gathered { reality, ..permitted() }.into())
}

#[test]
fn anchors_cost_microseconds() {
    let request = Request::new(Draft {
        tenant_id: TENANT.into(),
        subject: SUBJECT.into(),
        action: "payment.execute".to_owned(),
        ..Draft::default()
    });
    let request = request.unwrap();
    let none = facts(Vec::new());
    // These five anchors ground another action.
    let elsewhere = facts((0..5).map(|number| anchor(number, "report.*")).collect());
    let five = facts((0..5).map(|number| anchor(number, "payment.*")).collect());
    let verdict = decide(&request, &five, noonish());
    assert_eq!(verdict.decision, Decision::AllowWithConstraints);
    assert!(verdict.stop_conditions.iter().any(|condition| condition == "reality.decoupled"));
    let deciding = |facts| least(|| drop(black_box(decide(&request, facts, noonish()))));
    let alone = deciding(&none);
    let added = |facts| deciding(facts).saturating_sub(alone);
    let (elsewhere, five) = (added(&elsewhere), added(&five));
    eprintln!(
        "a decision: {alone:?}; without anchors of its own: +{elsewhere:?}; with five: +{five:?}"
    );
    assert!(elsewhere < Duration::from_micros(2) * SLOWER, "{elsewhere:?}");
    assert!(five < Duration::from_micros(10) * SLOWER, "{five:?}");
}
