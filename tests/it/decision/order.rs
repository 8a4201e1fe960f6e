//! The order of facts does not change the verdict, and a denial overrides every permission.

use std::sync::Arc;

use authority_decision::{Decision, Facts, Gathered, Reason, decide, moment::Window};
use proptest::{collection::vec, prelude::any};

use super::{agree::runner, templates, worlds};

/// Returns the same facts with every list rotated by `by`, and also reversed if `by` is even.
fn turned(facts: &Facts, by: usize) -> Facts {
    fn turn<T>(list: &mut [T], by: usize) {
        if !list.is_empty() {
            list.rotate_left(by % list.len());
        }
        if by.is_multiple_of(2) {
            list.reverse();
        }
    }
    let mut gathered = Gathered::clone(&facts.gathered);
    turn(&mut gathered.memberships, by);
    turn(&mut gathered.stop_signals, by);
    turn(&mut gathered.quarantines, by);
    turn(&mut gathered.delegations, by);
    turn(&mut gathered.principals, by);
    turn(&mut gathered.uses, by);
    turn(&mut gathered.chain_denials, by);
    turn(&mut gathered.acts_in, by);
    turn(&mut gathered.grants, by);
    turn(&mut gathered.policies, by);
    let reality = Arc::make_mut(&mut gathered.reality);
    turn(&mut reality.anchors, by);
    turn(&mut reality.overrides, by);
    turn(&mut reality.drifts, by);
    if let Some(tenant) = &mut gathered.tenant {
        turn(&mut Arc::make_mut(tenant).gate, by);
    }
    Facts { gathered: gathered.into(), ..facts.clone() }
}

#[test]
fn the_order_of_facts_changes_nothing() {
    let outcome = runner(1_000).run(&(vec(any::<u8>(), 0..700), 0..6_usize), |(bytes, by)| {
        let world = worlds::draw(&bytes);
        let request = world.request();
        let mut verdict = decide(&request, &world.facts, world.at);
        let mut other = decide(&request, &turned(&world.facts, by), world.at);
        // The core evaluates policies in the order of @id and a tie-break, and the trace follows
        // that order.
        if let (Some(one), Some(two)) = (&mut verdict.trace, &mut other.trace) {
            one.iter_mut().chain(two).for_each(|stage| stage.steps.sort_by_key(|s| s.id.clone()));
        }
        assert_eq!(verdict, other);
        Ok(())
    });
    assert_eq!(outcome, Ok(()));
}

#[test]
fn a_forbid_overrides_wherever_it_stands() {
    let forbid = templates::forbid_all();
    let permit = templates::policy(&[12], &[], Window::default());
    let outcome =
        runner(1_000).run(&(vec(any::<u8>(), 0..700), any::<usize>()), |(bytes, place)| {
            let mut world = worlds::draw(&bytes);
            // An obligation of the permit that the caller does not support would deny the request.
            world.draft.supported_obligations = None;
            let request = world.request();
            let with = |policy| {
                let mut gathered = Gathered::clone(&world.facts.gathered);
                let place = place % (gathered.policies.len() + 1);
                gathered.policies.insert(place, policy);
                let facts = Facts { gathered: gathered.into(), ..world.facts.clone() };
                decide(&request, &facts, world.at)
            };
            let before = decide(&request, &world.facts, world.at);
            let forbidden = with(forbid.clone());
            assert_eq!(forbidden.decision, Decision::Deny);
            if before.decision.permits() {
                assert_eq!(forbidden.reason_code, Reason::PolicyDenied);
            }
            let permitted = with(permit.clone());
            assert_eq!(permitted.decision, before.decision, "a permit only adds constraints");
            assert_eq!(permitted.reason_code, before.reason_code);
            Ok(())
        });
    assert_eq!(outcome, Ok(()));
}
