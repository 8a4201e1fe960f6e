//! Tests denials of participants in the chain, and denials that start later.

use super::*;

#[test]
fn a_denial_concerns_those_to_whom_one_lends() {
    let denied = |id: &str, used: Used| {
        code(|w| {
            w.uses("uses-1", used).allowed = false;
            let denial = w.gathered.uses.remove(0);
            w.gathered.chain_denials.push(ChainDenial { principal_id: id.into(), denial });
        })
    };
    let payments = || Used::Action("payment.*".parse().unwrap());
    assert_eq!(denied(PARENT_AGENT, payments()), Reason::CapabilityDenied);
    assert_eq!(denied(HUMAN, payments()), Reason::CapabilityDenied);
    assert_eq!(denied(PARENT_AGENT, Used::Tool(tool("tool-1").into())), Reason::CapabilityDenied);
    assert_eq!(denied(PARENT_AGENT, Used::Missing("x".to_owned())), Reason::CapabilityDenied);
    let reports = Used::Action("report.*".parse().unwrap());
    assert_eq!(denied(PARENT_AGENT, reports), Reason::PermissionGranted);
    assert_eq!(denied("svc:agent:t:stranger", payments()), Reason::PermissionGranted);
}

#[test]
fn an_allow_ends_when_a_denial_begins() {
    let start = "2026-01-05T10:30:20Z";
    let ends = |of_chain: bool| {
        let mut world = World::sound();
        let row = world.uses("uses-1", Used::Action(Pattern::All));
        (row.allowed, row.window) = (false, window(Some(start), None));
        if of_chain {
            let denial = world.gathered.uses.remove(0);
            let principal_id = PARENT_AGENT.into();
            world.gathered.chain_denials.push(ChainDenial { principal_id, denial });
        }
        let verdict = world.decide();
        assert_eq!(verdict.reason_code, Reason::PermissionGranted);
        verdict.valid_until
    };
    assert_eq!([ends(false), ends(true)], [Some(moment(start)); 2]);
}
