//! Each finding of the hot path.

use super::*;
use crate::levels::RuntimeEffect;

fn anchored(change: impl FnOnce(&mut Anchor)) -> Verdict {
    let mut anchor = Anchor {
        id: "anchor-1".to_owned(),
        version: 1,
        grounds_actions: patterns(&["payment.*"]),
        grounds_profiles: Vec::new(),
        freshness: Some(FreshnessContract {
            max_staleness_seconds: 60,
            expected_refresh_seconds: None,
            stale_runtime_effect: None,
            missing_runtime_effect: None,
        }),
        unreadable: false,
        newest: Some(Snapshot {
            id: "snap-1".to_owned(),
            sampled_at: moment("2026-01-05T10:29:00Z"),
            valid_until: None,
            content_hash: None,
            contested: false,
        }),
        overridden_until: None,
    };
    change(&mut anchor);
    let mut world = World::sound();
    world.gathered.anchors.push(anchor.into());
    world.decide()
}

fn found(change: impl FnOnce(&mut Anchor)) -> Reason {
    anchored(change).reason_code
}

fn age(anchor: &mut Anchor, text: &str) {
    anchor.newest.as_mut().unwrap().sampled_at = moment(text);
}

fn contract(anchor: &mut Anchor) -> &mut FreshnessContract {
    anchor.freshness.as_mut().unwrap()
}

#[test]
fn staleness_is_by_the_clock() {
    let (granted, stale) = (Reason::PermissionGranted, Reason::RealityRevalidationRequired);
    assert_eq!(found(|_| {}), granted);
    assert_eq!(found(|a| age(a, "2026-01-05T10:28:59.999999Z")), stale);
    assert_eq!(found(|a| a.newest.as_mut().unwrap().valid_until = Some(now())), stale);
    assert_eq!(found(|a| a.newest = None), stale);
    assert_eq!(found(|a| a.freshness = None), granted);
    let review = |a: &mut Anchor| {
        contract(a).stale_runtime_effect = Some(RuntimeEffect::RequireHumanReview);
        age(a, "2026-01-05T10:00:00Z");
    };
    assert_eq!(found(review), Reason::RealityReviewRequired);
    let missing = |a: &mut Anchor| {
        contract(a).missing_runtime_effect = Some(RuntimeEffect::Deny);
        a.newest = None;
    };
    assert_eq!(found(missing), Reason::RealityDecoupled);
}

#[test]
fn the_other_findings() {
    let contested = |a: &mut Anchor| a.newest.as_mut().unwrap().contested = true;
    assert_eq!(found(contested), Reason::RealityDecoupled);
    assert_eq!(found(|a| a.unreadable = true), Reason::RealityReviewRequired);
    assert_eq!(found(|a| age(a, "2026-01-05T10:31:00Z")), Reason::PermissionGranted);
    assert_eq!(found(|a| age(a, "2026-01-05T10:31:01Z")), Reason::RealityReviewRequired);
    let late = anchored(|a| contract(a).expected_refresh_seconds = Some(30));
    assert_eq!(late.obligations, ["audit.emit", "reality.warn"]);
    let lifted = |a: &mut Anchor| {
        a.newest = None;
        a.overridden_until = Some(moment("2026-01-05T10:30:01Z"));
    };
    assert_eq!(found(lifted), Reason::PermissionGranted);
    let elsewhere = |a: &mut Anchor| {
        a.newest = None;
        a.grounds_actions = patterns(&["report.*"]);
    };
    assert_eq!(found(elsewhere), Reason::PermissionGranted);
    let profiled = |a: &mut Anchor| {
        a.newest = None;
        a.grounds_profiles = vec!["refunds".to_owned()];
    };
    assert_eq!(found(profiled), Reason::PermissionGranted);
}

#[test]
fn open_drift_applies_to_its_actor_and_action() {
    let drift = |actor: Option<&str>, action: &str, until: Option<&str>| {
        code(|w| {
            w.gathered.drifts.push(Arc::new(Drift {
                id: "drift-1".to_owned(),
                actor_id: actor.map(str::to_owned),
                action: action.parse().ok(),
                effect: RuntimeEffect::Quarantine,
                overridden_until: until.map(moment),
            }));
        })
    };
    assert_eq!(drift(Some(SUBJECT), "payment.*", None), Reason::RealityDecoupled);
    assert_eq!(drift(None, "*", None), Reason::RealityDecoupled);
    assert_eq!(drift(Some(HUMAN), "*", None), Reason::PermissionGranted);
    assert_eq!(drift(None, "report.*", None), Reason::PermissionGranted);
    assert_eq!(drift(None, "*", Some("2026-01-05T10:30:00Z")), Reason::RealityDecoupled);
    assert_eq!(drift(None, "*", Some("2026-01-05T11:00:00Z")), Reason::PermissionGranted);
}
