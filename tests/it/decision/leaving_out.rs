//! Leaving a member out never widens what is permitted.
//!
//! Where decision.md itself makes a check depend on a member being there ("a named resource: …"),
//! leaving it out takes that check away, and only that one: the refusals that may go are listed.

use agent_authority::decision::{
    Draft, Facts, Gathered, Reason, Request, Verdict, decide, moment::Window,
};
use proptest::{collection::vec, prelude::any};

use super::{agree::runner, templates, worlds};

type Without = fn(&mut Draft);

/// Each member, how to leave it out, and the refusals that its absence may take away.
const MEMBERS: [(&str, Without, &[Reason]); 9] = [
    (
        "purpose",
        |draft| draft.purpose = None,
        &[
            Reason::PurposeUnknown,
            Reason::PurposeNotAdmitted,
            Reason::PurposeOutOfScope,
            // The purpose's own list of jurisdictions.
            Reason::JurisdictionUnsupported,
        ],
    ),
    (
        "resource_id",
        |draft| draft.resource_id = None,
        // Denied: a uses row with allowed = 0 on the resource itself.
        &[Reason::ResourceAccessMissing, Reason::CapabilityDenied],
    ),
    (
        "workspace_id",
        |draft| draft.workspace_id = None,
        &[Reason::WorkspaceAccessMissing, Reason::ProjectAccessMissing],
    ),
    ("project_id", |draft| draft.project_id = None, &[Reason::ProjectAccessMissing]),
    ("context.amount", |draft| drop(draft.context.remove("amount")), &[]),
    ("context.currency", |draft| drop(draft.context.remove("currency")), &[]),
    ("context.jurisdiction", |draft| drop(draft.context.remove("jurisdiction")), &[]),
    ("context.note", |draft| drop(draft.context.remove("note")), &[]),
    ("approval_id", |draft| draft.approval_id = None, &[]),
];

/// The statements that do not ask `has` first: what a policy makes of an absent member is its
/// author's word; the core's is that reading one errs, and denies.
const UNGUARDED: [usize; 7] = [2, 3, 4, 5, 9, 10, 12];

fn unguarded(facts: &Facts) -> Facts {
    let mut gathered = Gathered::clone(&facts.gathered);
    gathered.policies = (gathered.policies.iter().enumerate())
        .map(|(place, policy)| {
            let number = UNGUARDED[(place + policy.reference.id.len()) % UNGUARDED.len()];
            let rows = &policy.reference.applies_to;
            let own = templates::policy(&[number], &[], Window::default());
            own.applied_to(rows.clone(), Window::default()).into()
        })
        .collect();
    Facts { gathered: gathered.into(), ..facts.clone() }
}

#[test]
fn leaving_a_member_out_never_widens() {
    let outcome = runner(4_000).run(&vec(any::<u8>(), 0..700), |bytes| {
        let world = worlds::draw(&bytes);
        let facts = unguarded(&world.facts);
        let ask = |draft: &Draft| -> Verdict {
            decide(&Request::new(draft.clone()).unwrap(), &facts, world.at)
        };
        let whole = ask(&world.draft);
        if whole.decision.permits() {
            return Ok(());
        }
        for (member, without, taken) in MEMBERS {
            let mut draft = world.draft.clone();
            without(&mut draft);
            let less = ask(&draft);
            let explained = taken.contains(&whole.reason_code);
            assert!(!less.decision.permits() || explained, "{member}: {}", whole.reason_code);
        }
        Ok(())
    });
    if let Err(why) = outcome {
        panic!("{why}");
    }
}

/// Where only the request declares, leaving a part of its declaration out counts as the worst.
#[test]
fn leaving_out_how_it_can_be_undone_never_widens() {
    let outcome = runner(4_000).run(&vec(any::<u8>(), 0..700), |bytes| {
        let mut world = worlds::draw(&bytes);
        world.draft.tool_id = None;
        let facts = unguarded(&world.facts);
        let ask = |draft: &Draft| decide(&Request::new(draft.clone()).unwrap(), &facts, world.at);
        let whole = ask(&world.draft);
        let classified =
            world.draft.action_risk_classification.is_some_and(|c| c.risk_tier.is_some());
        if whole.decision.permits() || !classified {
            return Ok(());
        }
        if let Some(declaration) = &mut world.draft.action_declaration {
            declaration.reversibility = None;
            declaration.rollback_available = None;
            // A tool that gives the authority may declare a rollback, and the caller only raises.
            let tool =
                facts.gathered.uses.iter().any(|uses| {
                    matches!(&uses.used, agent_authority::decision::facts::Used::Tool(_))
                });
            assert!(tool || !ask(&world.draft).decision.permits(), "{}", whole.reason_code);
        }
        Ok(())
    });
    if let Err(why) = outcome {
        panic!("{why}");
    }
}
