//! Tests each row of the table of findings, in decisions and in checks.

use serde_json::json;

use super::*;
use crate::{facts::reality::*, levels::RuntimeEffect};

fn anchor() -> Anchor {
    Anchor {
        id: "anchor-1".into(),
        version: 1,
        anchor_type: AnchorType::FinancialContext,
        active: true,
        grounds_actions: patterns(&["payment.*"]),
        grounds_profiles: Vec::new(),
        freshness: Some(FreshnessContract {
            max_staleness_seconds: 61,
            expected_refresh_seconds: None,
            stale_runtime_effect: None,
            missing_runtime_effect: None,
        }),
        unreadable: false,
        changed_at: moment("2026-01-05T10:00:00Z"),
        newest: Some(Snapshot {
            id: "snap-1".into(),
            sampled_at: moment("2026-01-05T10:29:00Z"),
            valid_until: None,
            content_hash: "sha256:1".to_owned(),
            contested: false,
        }),
    }
}

fn drift() -> Drift {
    Drift {
        id: "drift-1".into(),
        drift_type: "stable_drift".to_owned(),
        actor_id: None,
        action: None,
        effect: RuntimeEffect::Quarantine,
        obligations: Vec::new(),
        since: moment("2026-01-05T10:20:00Z"),
        until_fresh: Vec::new(),
    }
}

/// Returns an override of a finding about the anchor with this newest snapshot.
fn lifting(source_id: &str, drift_type: &str, snapshot_id: Option<&str>) -> Override {
    Override {
        check_id: "check-1".into(),
        action: "payment.execute".to_owned(),
        actor_id: Some(SUBJECT.into()),
        until: moment("2026-01-05T10:30:20Z"),
        lifts: vec![Lifted {
            source_id: source_id.into(),
            drift_type: drift_type.to_owned(),
            found: vec![CheckedState {
                anchor_id: "anchor-1".into(),
                snapshot_id: snapshot_id.map(Into::into),
                contested: false,
            }],
        }],
    }
}

fn world(anchors: Vec<Anchor>, drifts: Vec<Drift>, overrides: Vec<Override>) -> World {
    let mut world = World::sound();
    world.gathered.reality = Arc::new(Reality {
        anchors: anchors.into_iter().map(Arc::new).collect(),
        overrides: overrides.into_iter().map(Arc::new).collect(),
        drifts: drifts.into_iter().map(Arc::new).collect(),
    });
    world
}

fn anchored(change: impl FnOnce(&mut Anchor)) -> Verdict {
    let mut anchor = anchor();
    change(&mut anchor);
    world(vec![anchor], vec![], vec![]).decide()
}

fn found(change: impl FnOnce(&mut Anchor)) -> Reason {
    anchored(change).reason_code
}

fn newest(anchor: &mut Anchor) -> &mut Snapshot {
    anchor.newest.as_mut().unwrap()
}

fn sampled(anchor: &mut Anchor, text: &str) {
    newest(anchor).sampled_at = moment(text);
}

fn contract(anchor: &mut Anchor) -> &mut FreshnessContract {
    anchor.freshness.as_mut().unwrap()
}

#[test]
fn staleness_is_by_the_clock() {
    let (granted, stale) = (Reason::PermissionGranted, Reason::RealityRevalidationRequired);
    assert_eq!(found(|_| {}), granted);
    assert_eq!(found(|a| sampled(a, "2026-01-05T10:28:59.000001Z")), granted);
    // The snapshot is stale from exactly this age on.
    assert_eq!(found(|a| sampled(a, "2026-01-05T10:28:59Z")), stale);
    assert_eq!(found(|a| newest(a).valid_until = Some(now())), stale);
    assert_eq!(found(|a| a.newest = None), stale);
    assert_eq!(found(|a| a.freshness = None), granted);
    // Without a contract, an anchor is never stale. But without a snapshot it is missing.
    let unobserved = |a: &mut Anchor| (a.freshness, a.newest) = (None, None);
    assert_eq!(found(unobserved), stale);
    let review = |a: &mut Anchor| {
        contract(a).stale_runtime_effect = Some(RuntimeEffect::RequireHumanReview);
        sampled(a, "2026-01-05T10:00:00Z");
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
    assert_eq!(found(|a| newest(a).contested = true), Reason::RealityDecoupled);
    assert_eq!(found(|a| a.unreadable = true), Reason::RealityReviewRequired);
    assert_eq!(found(|a| sampled(a, "2026-01-05T10:31:00Z")), Reason::PermissionGranted);
    assert_eq!(found(|a| sampled(a, "2026-01-05T10:31:00.000001Z")), Reason::RealityReviewRequired);
    let late = anchored(|a| contract(a).expected_refresh_seconds = Some(30));
    assert_eq!(late.obligations, ["audit.emit", "reality.warn"]);
    let elsewhere = |a: &mut Anchor| {
        a.newest = None;
        a.grounds_actions = patterns(&["report.*"]);
    };
    assert_eq!(found(elsewhere), Reason::PermissionGranted);
    let nothing = |a: &mut Anchor| (a.newest, a.grounds_actions) = (None, Vec::new());
    assert_eq!(found(nothing), Reason::PermissionGranted);
    let inactive = |a: &mut Anchor| (a.newest, a.active) = (None, false);
    assert_eq!(found(inactive), Reason::PermissionGranted);
    let profiled = |a: &mut Anchor| {
        a.newest = None;
        a.grounds_profiles = vec!["refunds".to_owned()];
    };
    assert_eq!(found(profiled), Reason::PermissionGranted);
}

/// A contested snapshot that is also stale: the worse finding counts, in any order.
#[test]
fn the_worst_finding_stands() {
    let effect = |stale| {
        found(|a| {
            newest(a).contested = true;
            sampled(a, "2026-01-05T10:00:00Z");
            contract(a).stale_runtime_effect = Some(stale);
        })
    };
    assert_eq!(effect(RuntimeEffect::Continue), Reason::RealityDecoupled);
    assert_eq!(effect(RuntimeEffect::Deny), Reason::RealityDecoupled);
    let ahead = anchored(|a| {
        sampled(a, "2026-01-05T10:40:00Z");
        newest(a).valid_until = Some(moment("2026-01-05T10:30:00Z"));
    });
    // Unknown is worse than stale.
    assert_eq!(ahead.reason_code, Reason::RealityReviewRequired);
}

#[test]
fn what_consulted_an_anchor_says_so_and_ends_with_it() {
    let verdict = anchored(|_| {});
    assert_eq!(
        verdict.stop_conditions,
        ["actor.stop_signal", "delegation.revoked", "reality.decoupled"]
    );
    // Sampled at 10:29:00, stale after 61 s. The tenant's validity would end at 10:31.
    assert_eq!(verdict.valid_until, Some(moment("2026-01-05T10:30:01Z")));
    let ends = anchored(|a| newest(a).valid_until = Some(moment("2026-01-05T10:30:00.5Z")));
    assert_eq!(ends.valid_until, Some(moment("2026-01-05T10:30:00.5Z")));
    let elsewhere = anchored(|a| a.grounds_actions = patterns(&["report.*"]));
    assert_eq!(elsewhere.stop_conditions, ["actor.stop_signal", "delegation.revoked"]);
}

#[test]
fn an_override_lifts_exactly_what_was_found() {
    let missing = || Anchor { newest: None, ..anchor() };
    let decide = |anchor: Anchor, change: &dyn Fn(&mut Override)| {
        let mut lifting = lifting("anchor-1", "source_of_truth_stale", None);
        change(&mut lifting);
        world(vec![anchor], vec![], vec![lifting]).decide()
    };
    let lifted = decide(missing(), &|_| {});
    assert_eq!(lifted.reason_code, Reason::PermissionGranted);
    assert_eq!(lifted.obligations, ["audit.emit", "reality.overridden", "reality.warn"]);
    assert_eq!(lifted.valid_until, Some(moment("2026-01-05T10:30:20Z")));
    let held = |change: &dyn Fn(&mut Override)| {
        assert_eq!(decide(missing(), change).reason_code, Reason::RealityRevalidationRequired);
    };
    held(&|lifting| lifting.until = now());
    held(&|lifting| lifting.action = "payment.refund".to_owned());
    held(&|lifting| lifting.actor_id = Some(HUMAN.into()));
    held(&|lifting| lifting.lifts[0].source_id = "anchor-2".into());
    held(&|lifting| lifting.lifts[0].drift_type = "verified_but_stale".to_owned());
    held(&|lifting| lifting.lifts[0].found[0].snapshot_id = Some("snap-0".into()));
    held(&|lifting| lifting.lifts[0].found[0].contested = true);
    held(&|lifting| lifting.lifts[0].found.clear());
    // A newer snapshot, even a stale one, ends an override of the earlier snapshot.
    let mut stale = anchor();
    sampled(&mut stale, "2026-01-05T10:00:00Z");
    let over = |id: &str| {
        let lifting = lifting("anchor-1", "verified_but_stale", Some(id));
        world(vec![stale.clone()], vec![], vec![lifting]).decide().reason_code
    };
    assert_eq!(over("snap-1"), Reason::PermissionGranted);
    assert_eq!(over("snap-0"), Reason::RealityRevalidationRequired);
}

#[test]
fn open_drift_applies_to_its_actor_and_action() {
    let code = |change: &dyn Fn(&mut Drift)| {
        let mut drift = drift();
        change(&mut drift);
        world(vec![], vec![drift], vec![]).decide().reason_code
    };
    assert_eq!(code(&|_| {}), Reason::RealityDecoupled);
    assert_eq!(code(&|d| d.actor_id = Some(SUBJECT.into())), Reason::RealityDecoupled);
    let of = |id: &str| code(&|d| d.actor_id = Some(id.into()));
    // Drift of a participant in the chain that the subject acts under also counts.
    assert_eq!([of(PARENT_AGENT), of(HUMAN)], [Reason::RealityDecoupled; 2]);
    assert_eq!(of("svc:agent:t:stranger"), Reason::PermissionGranted);
    assert_eq!(code(&|d| d.action = "payment.*".parse().ok()), Reason::RealityDecoupled);
    assert_eq!(code(&|d| d.action = "report.*".parse().ok()), Reason::PermissionGranted);
    let obliged = Drift {
        effect: RuntimeEffect::ContinueWithWarning,
        obligations: vec!["notify.treasury".to_owned()],
        ..drift()
    };
    let verdict = world(vec![], vec![obliged], vec![]).decide();
    assert_eq!(verdict.obligations, ["audit.emit", "notify.treasury", "reality.warn"]);
    let over = |snapshot_id: &str, anchors: Vec<Anchor>| {
        let lifting = lifting("drift-1", "stable_drift", Some(snapshot_id));
        world(anchors, vec![drift()], vec![lifting]).decide().reason_code
    };
    assert_eq!(over("snap-1", vec![anchor()]), Reason::PermissionGranted);
    assert_eq!(over("snap-0", vec![anchor()]), Reason::RealityDecoupled, "it was not reviewed");
    assert_eq!(over("snap-1", vec![]), Reason::RealityDecoupled);
}

/// Drift about age ends only with a newer, fresh snapshot of each of its anchors.
#[test]
fn drift_about_age_ends_by_newer_observations() {
    let code = |anchors: Vec<Anchor>, seen: &[(&str, Option<&str>)]| {
        let until_fresh = seen.iter().map(|(id, at)| Observed {
            anchor_id: (*id).into(),
            sampled_at: at.map(moment),
            max_age_seconds: None,
        });
        let drift = Drift { until_fresh: until_fresh.collect(), ..drift() };
        world(anchors, vec![drift], vec![]).decide().reason_code
    };
    let (granted, drifted) = (Reason::PermissionGranted, Reason::RealityDecoupled);
    assert_eq!(code(vec![anchor()], &[("anchor-1", Some("2026-01-05T10:28:00Z"))]), granted);
    assert_eq!(code(vec![anchor()], &[("anchor-1", None)]), granted);
    assert_eq!(code(vec![anchor()], &[("anchor-1", Some("2026-01-05T10:29:00Z"))]), drifted);
    assert_eq!(code(vec![], &[("anchor-1", None)]), drifted);
    let two = [("anchor-1", None), ("anchor-2", None)];
    assert_eq!(code(vec![anchor()], &two), drifted);
    // An anchor that grounds another action is not consulted, but must still be fresh.
    let other = |at: &str| {
        let mut other = Anchor { id: "anchor-2".into(), ..anchor() };
        other.grounds_actions = patterns(&["report.*"]);
        sampled(&mut other, at);
        other
    };
    assert_eq!(code(vec![anchor(), other("2026-01-05T10:29:30Z")], &two), granted);
    assert_eq!(code(vec![anchor(), other("2026-01-05T10:20:00Z")], &two), drifted);
    let retired = Anchor { active: false, ..anchor() };
    assert_eq!(code(vec![retired], &[("anchor-1", None)]), drifted);
}

#[test]
fn a_check_compares_what_was_assumed() {
    let checked = |anchor: Option<Anchor>| CheckedAnchor {
        id: "anchor-1".into(),
        anchor,
        observations: vec![("/rates/USD".to_owned(), json!(1.25)), ("/count".to_owned(), json!(1))],
    };
    let assumed = |change: &dyn Fn(&mut Assumption)| {
        let mut assumption = Assumption {
            anchor_id: "anchor-1".into(),
            expected_content_hash: None,
            path: None,
            equals: None,
            max_age_seconds: None,
        };
        change(&mut assumption);
        let result = judge(&[checked(Some(anchor()))], &[assumption], &[], now());
        (result.result, result.findings[0].1.drift_type)
    };
    let sound = (CouplingResult::Coupled, None);
    assert_eq!(assumed(&|_| {}), sound);
    assert_eq!(assumed(&|a| a.expected_content_hash = Some("sha256:1".to_owned())), sound);
    let other = |a: &mut Assumption| a.expected_content_hash = Some("sha256:2".to_owned());
    let decoupled = CouplingResult::DecouplingDetected;
    assert_eq!(assumed(&other), (decoupled, Some(DriftType::StableDrift)));
    let path = |path: &'static str, equals: Option<serde_json::Value>| {
        assumed(&|a| (a.path, a.equals) = (Some(path.to_owned()), equals.clone()))
    };
    assert_eq!(path("/rates/USD", Some(json!(1.25))), sound);
    assert_eq!(path("/rates/USD", None), sound);
    assert_eq!(path("/count", Some(json!(1.0))), sound);
    let drifted = (decoupled, Some(DriftType::SemanticAnchorDrift));
    assert_eq!(path("/rates/USD", Some(json!(1.3))), drifted);
    assert_eq!(path("/rates/GBP", None), drifted);
    assert_eq!(assumed(&|a| a.max_age_seconds = Some(60)), sound);
    let expired = (CouplingResult::RevalidationRequired, Some(DriftType::AssumptionExpired));
    assert_eq!(assumed(&|a| a.max_age_seconds = Some(59)), expired);
    let unknown = judge(&[checked(None)], &[], &[], now());
    assert_eq!(unknown.result, CouplingResult::Unknown);
    assert_eq!(unknown.effect, RuntimeEffect::RequireHumanReview);
    let nothing = judge(&[], &[], &[], now());
    assert_eq!(nothing.result, CouplingResult::CoupledWithWarnings);
}

#[test]
fn what_is_tolerated_is_a_warning_and_only_that() {
    let stale = Anchor { newest: None, ..anchor() };
    let checked =
        CheckedAnchor { id: "anchor-1".into(), anchor: Some(stale), observations: vec![] };
    let tolerated = |drift_type: &str, hash: Option<&str>| Tolerated {
        anchor_id: "anchor-1".into(),
        drift_type: drift_type.to_owned(),
        content_hash: hash.map(str::to_owned),
    };
    let result =
        |known: Tolerated| judge(std::slice::from_ref(&checked), &[], &[known], now()).result;
    let warned = CouplingResult::CoupledWithWarnings;
    assert_eq!(result(tolerated("source_of_truth_stale", None)), warned);
    let held = CouplingResult::RevalidationRequired;
    assert_eq!(result(tolerated("verified_but_stale", None)), held);
    assert_eq!(result(tolerated("source_of_truth_stale", Some("sha256:1"))), held);
}

/// Each kind of anchor has its own kind of drift.
#[test]
fn drift_is_named_by_the_kind_of_anchor() {
    let named = |anchor_type, change: &dyn Fn(&mut Anchor)| {
        let mut anchor = Anchor { anchor_type, ..anchor() };
        change(&mut anchor);
        anchor.judge(now()).drift_type.map_or("", DriftType::word)
    };
    let stale = |a: &mut Anchor| sampled(a, "2026-01-05T10:00:00Z");
    for (anchor_type, word) in [
        (AnchorType::EnvironmentState, "operational_context_stale"),
        (AnchorType::InfrastructureContext, "operational_context_stale"),
        (AnchorType::MarketContext, "operational_context_stale"),
        (AnchorType::VendorContext, "operational_context_stale"),
        (AnchorType::SystemOfRecord, "verified_but_stale"),
        (AnchorType::IdentityContext, "verified_but_stale"),
    ] {
        assert_eq!(named(anchor_type, &stale), word);
        assert_eq!(named(anchor_type, &|a| a.newest = None), "source_of_truth_stale");
        let contested = |a: &mut Anchor| newest(a).contested = true;
        assert_eq!(named(anchor_type, &contested), "cross_system_consensus_drift");
    }
}
