//! Reality can only reduce permissions. No observation, finding or missing observation permits
//! more.

use std::{cell::Cell, sync::Arc};

use authority_decision::{
    Decision, Facts, Gathered, Pattern, Request, decide,
    reality::{Anchor, CheckedState, Drift, DriftType, Lifted, Override, Reality},
};
use chrono::TimeDelta;
use proptest::{collection::vec, prelude::any};

use super::{
    agree::runner,
    worlds::{self, World},
};

/// Returns the rank of the decision: 0 for a denial, 1 for a hold, 2 for a permission.
fn permits(request: &Request, facts: &Facts, world: &World) -> u8 {
    match decide(request, facts, world.at).decision {
        Decision::Deny => 0,
        Decision::RequireApproval => 1,
        Decision::Allow | Decision::AllowWithConstraints => 2,
    }
}

fn with(facts: &Facts, change: impl FnOnce(&mut Reality)) -> Facts {
    let mut gathered = Gathered::clone(&facts.gathered);
    change(Arc::make_mut(&mut gathered.reality));
    Facts { gathered: gathered.into(), ..facts.clone() }
}

/// Changes the world's reality and compares the verdicts. Also counts the changed verdicts, because
/// a change without any effect would be no test.
#[test]
fn nothing_about_the_world_permits_more() {
    let (lifted, by_age) = (Cell::new(0_u32), Cell::new(0_u32));
    let lowered = Cell::new([0_u32; 3]);
    let drawn = (vec(any::<u8>(), 0..900), vec(any::<u8>(), 0..200), 1..5_000_i64);
    let outcome = runner(6_000).run(&drawn, |(bytes, more, seconds)| {
        let world = worlds::draw(&bytes);
        let (request, facts) = (world.request(), &world.facts);
        let before = permits(&request, facts, &world);
        let (anchor, drift): (Anchor, Drift) = worlds::drawn_reality(&more, world.at);
        let more = anchor.clone();
        let older = |reality: &mut Reality| {
            for anchor in &mut reality.anchors {
                let newest = Arc::make_mut(anchor).newest.as_mut();
                let past = newest.filter(|newest| newest.sampled_at <= world.at);
                if let Some(newest) = past {
                    newest.sampled_at -= TimeDelta::seconds(seconds);
                    // A changed newest snapshot counts as a write: reviews of the earlier one no
                    // longer apply.
                    Arc::make_mut(anchor).changed_at = world.at;
                }
            }
        };
        let changed = [
            with(facts, |reality| {
                reality.anchors.push(Anchor { id: "new".into(), ..anchor }.into());
            }),
            with(facts, |reality| reality.drifts.push(Drift { id: "new".into(), ..drift }.into())),
            with(facts, |reality| {
                for anchor in &mut reality.anchors {
                    if let Some(newest) = &mut Arc::make_mut(anchor).newest {
                        newest.contested = true;
                    }
                }
            }),
        ];
        // Adds an anchor to the world that was observed in the past.
        let grounding = Anchor {
            active: true,
            grounds_actions: vec![Pattern::All],
            unreadable: false,
            ..more.clone()
        };
        let based = with(facts, |reality| reality.anchors.push(grounding.into()));
        let aged = with(&based, older);
        let [based, aged] = [&based, &aged].map(|facts| permits(&request, facts, &world));
        assert!(aged <= based, "from {based} to {aged} by {seconds} s");
        by_age.set(by_age.get() + u32::from(aged < based));
        lifted.set(lifted.get() + u32::from(an_override_permits_no_more(&world, &request, more)));
        let mut counts = lowered.get();
        for (count, facts) in counts.iter_mut().zip(&changed) {
            let after = permits(&request, facts, &world);
            assert!(after <= before, "from {before} to {after}: {:#?}", facts.gathered.reality);
            *count += u32::from(after < before);
        }
        lowered.set(counts);
        Ok(())
    });
    outcome.unwrap();
    assert!(lifted.get() > 0 && by_age.get() > 0, "{} {}", lifted.get(), by_age.get());
    assert!(lowered.get().iter().all(|count| *count > 0), "{:?}", lowered.get());
}

/// Checks that an override permits no more than a world without the finding that it lifts, and that
/// the end of the override permits no more than the override did. Returns whether the end permits
/// less.
fn an_override_permits_no_more(world: &World, request: &Request, more: Anchor) -> bool {
    let facts = &world.facts;
    let missing = Anchor {
        id: "missing".into(),
        active: true,
        grounds_actions: vec![Pattern::All],
        newest: None,
        unreadable: false,
        ..more
    };
    let lifting = Override {
        check_id: "check".into(),
        action: request.action.clone(),
        actor_id: None,
        until: world.at + TimeDelta::seconds(1),
        lifts: vec![Lifted {
            source_id: missing.id.clone(),
            drift_type: DriftType::SourceOfTruthStale.to_string(),
            found: vec![CheckedState {
                anchor_id: missing.id.clone(),
                snapshot_id: None,
                contested: false,
            }],
        }],
    };
    let ended = with(facts, |reality| reality.anchors.push(missing.into()));
    let in_force = with(&ended, |reality| reality.overrides.push(lifting.into()));
    let [ended, in_force] = [&ended, &in_force].map(|facts| permits(request, facts, world));
    let before = permits(request, facts, world);
    assert!(ended <= in_force && in_force <= before);
    ended < in_force
}
