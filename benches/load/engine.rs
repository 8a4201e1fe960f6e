//! Measures the decision itself, on one thread of this process: for an action without anchors, and
//! for an action with five anchors.

use std::{hint::black_box, sync::Arc, time::Instant};

use authority_decision::{
    Decision, Facts, Pattern, Request, decide,
    reality::{Anchor, AnchorType, FreshnessContract, Snapshot},
};
use authority_evidence::verify::sealed_in;
use chrono::{DateTime, TimeDelta, Utc};

use crate::{Fault, meter::to_float, row::Report};

/// A permitted payment, with all facts of its decision.
const SEALED: &[u8] = include_bytes!("../../tests/golden/permission_granted-1.json");
const ANCHORS: usize = 5;
/// The number of rounds for each of the two actions. The rounds alternate, because other load on
/// the machine must affect both actions.
const ROUNDS: u32 = 40;
const CALLS: u32 = 5_000;

pub(crate) fn note(report: &mut Report) -> Result<(), Fault> {
    let sealed = sealed_in(SEALED)?;
    let (request, at) = (sealed.request()?, sealed.head()?.evaluated_at);
    let ungrounded = sealed.facts()?;
    let grounded = grounded(&ungrounded, at);
    let verdict = decide(&request, &grounded, at);
    if verdict.decision == Decision::Deny || !verdict.stop_conditions.iter().any(is_reality) {
        return Err(format!("the anchors are not consulted: {:?}", verdict.reason_code).into());
    }
    let mut took = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for (least, facts) in took.iter_mut().zip([&ungrounded, &grounded]) {
            *least = least.min(micros(&request, facts, at));
        }
    }
    let [without, with] = took;
    report.notes.push(format!(
        "deciding alone: {without:.2} µs for an action without anchors; {:.2} µs more with {ANCHORS} anchors",
        with - without
    ));
    Ok(())
}

fn is_reality(condition: &String) -> bool {
    condition == "reality.decoupled"
}

/// Returns how long a decision takes, in microseconds.
fn micros(request: &Request, facts: &Facts, at: DateTime<Utc>) -> f64 {
    let begun = Instant::now();
    for _ in 0..CALLS {
        black_box(decide(black_box(request), black_box(facts), at));
    }
    begun.elapsed().as_secs_f64() * 1e6 / to_float(CALLS.into())
}

/// Returns the same facts with fresh anchors that ground every action.
fn grounded(facts: &Facts, at: DateTime<Utc>) -> Facts {
    let anchor = |number: usize| Anchor {
        id: format!("svc:ent:acme:reality_anchor:{number:032}").into(),
        version: 1,
        anchor_type: AnchorType::ExternalSourceOfTruth,
        active: true,
        grounds_actions: vec![Pattern::All],
        grounds_profiles: Vec::new(),
        freshness: Some(FreshnessContract {
            max_staleness_seconds: 3600,
            expected_refresh_seconds: Some(1800),
            stale_runtime_effect: None,
            missing_runtime_effect: None,
        }),
        unreadable: false,
        changed_at: at - TimeDelta::minutes(1),
        newest: Some(Snapshot {
            id: format!("svc:snapshot:{number:032}").into(),
            sampled_at: at - TimeDelta::minutes(1),
            valid_until: None,
            content_hash: "sha256:0".to_owned(),
            contested: false,
        }),
    };
    let mut gathered = (*facts.gathered).clone();
    let reality = Arc::make_mut(&mut gathered.reality);
    reality.anchors.extend((0..ANCHORS).map(|number| anchor(number).into()));
    Facts { gathered: gathered.into(), ..facts.clone() }
}
