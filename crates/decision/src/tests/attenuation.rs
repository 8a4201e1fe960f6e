//! Tests that a child delegation can only narrow.

use super::*;
use crate::{
    Bounds,
    facts::{
        bounds::{MaxTotalAmount, MaxUses},
        delegation::{exceeds, widens},
    },
    levels::RiskTier,
};

fn bounded() -> Bounds {
    Bounds {
        max_amount: "100".parse().ok(),
        currency: Some("EUR".to_owned()),
        max_uses: Some(MaxUses { count: 10, window_seconds: 60 }),
        max_total_amount: "500"
            .parse()
            .ok()
            .map(|amount| MaxTotalAmount { amount, window_seconds: 60 }),
        jurisdictions: vec!["DE".to_owned(), "FR".to_owned()],
        hours: serde_json::from_str(r#"{"from": "09:00", "to": "17:00"}"#).ok(),
        resource_ids: vec!["res-1".into()],
        workspace_ids: vec!["ws-1".into()],
        purposes: vec!["payroll".to_owned()],
        max_risk_tier: Some(RiskTier::Limited),
    }
}

fn pair() -> (Delegation, Delegation) {
    let mut parent = link("del-0", None, HUMAN, PARENT_AGENT);
    parent.bounds = bounded();
    let window = Window { from: Some(moment("2026-01-01T00:00:00Z")), until: Some(now()) };
    parent.window = window;
    let mut child = link("del-1", Some("del-0"), PARENT_AGENT, SUBJECT);
    (child.bounds, child.window) = (bounded(), window);
    (parent, child)
}

/// No time zone is known.
fn no_zones(_: &str) -> Vec<i32> {
    Vec::new()
}

fn excess(change: impl FnOnce(&mut Delegation)) -> Vec<&'static str> {
    let (parent, mut child) = pair();
    change(&mut child);
    exceeds(&parent, &child, &no_zones).into_iter().map(|(member, _)| member).collect()
}

#[test]
fn the_same_bounds_and_narrower_ones_pass() {
    assert!(excess(|_| {}).is_empty());
    let narrower = |child: &mut Delegation| {
        child.actions = patterns(&["payment.execute", "payment.refund.*"]);
        child.bounds.max_amount = "99.5".parse().ok();
        child.bounds.jurisdictions.pop();
        child.bounds.max_uses = Some(MaxUses { count: 10, window_seconds: 3600 });
        child.bounds.max_risk_tier = Some(RiskTier::Minimal);
        child.can_delegate = false;
    };
    assert!(excess(narrower).is_empty());
}

#[test]
fn what_is_unbounded_is_wider() {
    let members = [
        "purposes",
        "jurisdictions",
        "resource_ids",
        "workspace_ids",
        "max_amount",
        "max_uses",
        "max_total_amount",
        "max_risk_tier",
        "hours",
        "currency",
    ];
    assert_eq!(excess(|child| child.bounds = Bounds::default()), members);
    assert_eq!(excess(|child| child.window.from = None), ["not_before"]);
    assert_eq!(excess(|child| child.window.until = None), ["expires_at"]);
}

#[test]
fn what_is_above_is_wider() {
    assert_eq!(excess(|c| c.actions = patterns(&["payment.*", "report.read"])), ["actions"]);
    assert_eq!(excess(|c| c.actions = patterns(&["*"])), ["actions"]);
    assert_eq!(excess(|c| c.bounds.max_amount = "100.0001".parse().ok()), ["max_amount"]);
    assert_eq!(excess(|c| c.bounds.currency = Some("USD".to_owned())), ["currency"]);
    assert_eq!(excess(|c| c.bounds.purposes.push("refunds".to_owned())), ["purposes"]);
    assert_eq!(excess(|c| c.bounds.max_risk_tier = Some(RiskTier::High)), ["max_risk_tier"]);
    let faster = MaxUses { count: 10, window_seconds: 59 };
    assert_eq!(excess(|c| c.bounds.max_uses = Some(faster)), ["max_uses"]);
    assert_eq!(excess(|c| c.delegator_id = HUMAN.into()), ["delegator_id"]);
}

#[test]
fn only_a_parent_that_can_delegate_does() {
    let (mut parent, mut child) = pair();
    parent.can_delegate = false;
    child.can_delegate = false;
    let excess = exceeds(&parent, &child, &no_zones).into_iter();
    let members: Vec<_> = excess.map(|(member, _)| member).collect();
    assert_eq!(members, ["parent_id"]);
    assert!(widens(&parent, &child, &no_zones).is_empty());
}
