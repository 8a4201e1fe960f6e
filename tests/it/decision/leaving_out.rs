//! Leaving a member out never widens what is permitted.
//!
//! Where docs/decision.md makes a check depend on the presence of a member ("the named resource …"), leaving
//! it out removes that check, and only that one: the refusals that may disappear are listed. A caller's
//! declaration only raises, so leaving it out removes what it raised: [`a_declaration_only_raises`] tests the
//! other direction.

use std::sync::Arc;

use authority_decision::{
    Amount, Draft, Facts, Gathered, Reason, Request, Target, Verdict, decide,
    facts::{Constraints, Used},
    moment::Window,
};
use proptest::{collection::vec, prelude::any};

use super::{
    agree::runner,
    templates,
    worlds::{self, World},
};

type Without = fn(&mut Draft);

/// What a declaration may raise above the records' requirements.
const RAISED: [Reason; 5] = [
    Reason::OversightRequired,
    Reason::RiskProhibited,
    Reason::RiskExceedsDelegation,
    Reason::ResourceAccessMissing,
    Reason::ProjectAccessMissing,
];

/// Each member, how to leave it out, and the refusals that its absence may remove.
const MEMBERS: [(&str, Without, &[Reason]); 12] = [
    (
        "tool_id",
        |draft| draft.tool_id = None,
        // Missing: the only authority is a uses row on another tool than the one named.
        &[Reason::ToolMismatch, Reason::PermissionMissing],
    ),
    ("action_declaration", |draft| draft.action_declaration = None, &RAISED),
    ("action_risk_classification", |draft| draft.action_risk_classification = None, &RAISED),
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
        &[
            Reason::WorkspaceAccessMissing,
            Reason::ProjectAccessMissing,
            // A resource or a tool of another workspace than the one named.
            Reason::ResourceAccessMissing,
            Reason::ToolMismatch,
        ],
    ),
    ("project_id", |draft| draft.project_id = None, &[Reason::ProjectAccessMissing]),
    (
        "context.amount",
        |draft| drop(draft.context.remove("amount")),
        // A schema's bound on an optional member.
        &[Reason::ContextInvalid],
    ),
    ("context.currency", |draft| drop(draft.context.remove("currency")), &[]),
    ("context.jurisdiction", |draft| drop(draft.context.remove("jurisdiction")), &[]),
    (
        "context.note",
        |draft| drop(draft.context.remove("note")),
        // A member of an undeclared type, or a member that a schema refuses.
        &[Reason::ContextInvalid],
    ),
    ("approval_id", |draft| draft.approval_id = None, &[]),
];

/// The statements without a `has` test: the effect of an absent member in a policy is up to its author; the
/// core only makes reading one an error, which denies.
const UNGUARDED: [usize; 7] = [2, 3, 4, 5, 9, 10, 12];

/// The statements on declarations: they do not depend on the caller, so none of them may stop matching if no
/// tool is named.
const ON_DECLARATIONS: [usize; 7] = [8, 11, 16, 17, 18, 19, 20];

/// Without the policies that apply by declarations: whether one applies is up to its author, and one that
/// applies only to worse declarations stops applying with them. If nothing is declared it matches, so leaving
/// out the declaration does not avoid these either.
fn unmoved_by_declarations(facts: &Facts) -> Facts {
    let mut gathered = Gathered::clone(&facts.gathered);
    gathered.policies.retain(|policy| {
        let targets = &policy.reference.applies_to;
        !targets.iter().any(|to| matches!(to, Target::EffectClass(_) | Target::RiskTier(_)))
    });
    Facts { gathered: gathered.into(), ..facts.clone() }
}

/// The same world under one authority. With several, a member may determine which is used, and a request may be
/// held under one that would be permitted under another, when that one is named.
fn under_one_authority(facts: &Facts, statements: &[usize]) -> Facts {
    let mut gathered = Gathered::clone(&facts.gathered);
    if gathered.uses.len() > 1 {
        gathered.delegations.clear();
    }
    gathered.delegations.truncate(1);
    let mut allowed = gathered.delegations.len();
    gathered.uses.retain(|uses| {
        allowed += usize::from(uses.row.allowed);
        !uses.row.allowed || allowed == 1
    });
    for row in &mut gathered.acts_in {
        Arc::make_mut(row).allowed_actions = None;
    }
    gathered.policies = (gathered.policies.iter().enumerate())
        .map(|(place, policy)| {
            let number = statements[(place + policy.reference.id.len()) % statements.len()];
            let rows = &policy.reference.applies_to;
            let own = templates::policy(&[number], &[], Window::default());
            own.applied_to(rows.clone(), Window::default()).into()
        })
        .collect();
    Facts { gathered: gathered.into(), ..facts.clone() }
}

/// Refusals that a named member causes by itself, whatever else is wrong: a tool that does not perform the
/// action, a thing that a bound does not list, an amount below zero.
fn is_of_what_is_named(member: &str, world: &World, facts: &Facts, reason: Reason) -> bool {
    let draft = &world.draft;
    let unlisted = |id: Option<&String>| {
        let links = facts.gathered.delegations.iter().flat_map(|chain| &chain.0);
        let rows = facts.gathered.uses.iter().filter_map(|uses| match &uses.row.constraints {
            Constraints::Bounds(bounds) => Some(bounds.as_ref()),
            Constraints::Malformed(_) => None,
        });
        let bounds = links.map(|link| &link.bounds).chain(rows);
        let mut lists = bounds.map(|own| &own.resource_ids).filter(|list| !list.is_empty());
        id.is_some_and(|id| lists.any(|list| !list.contains(id)))
    };
    match member {
        "tool_id" => draft.tool_id.as_ref().is_some_and(|id| {
            let named = world.tools.iter().find(|tool| tool.id == *id);
            !named.is_some_and(|tool| {
                tool.live && tool.actions.iter().any(|own| own.covers(&draft.action))
            })
        }),
        "resource_id" => {
            reason == Reason::ConstraintExceeded && unlisted(draft.resource_id.as_ref())
        }
        "project_id" => reason == Reason::ConstraintExceeded && unlisted(draft.project_id.as_ref()),
        "context.amount" => {
            let amount = world.request().amount().unwrap_or_default();
            reason == Reason::ConstraintExceeded && amount < Amount::ZERO
        }
        _ => false,
    }
}

#[test]
fn leaving_a_member_out_never_widens() {
    let outcome = runner(8_000).run(&vec(any::<u8>(), 0..700), |bytes| {
        let world = worlds::draw(&bytes);
        let facts = under_one_authority(&world.facts, &UNGUARDED);
        let unmoved = unmoved_by_declarations(&facts);
        let ask = |facts: &Facts, draft: &Draft| -> Verdict {
            let facts = world.facts_with_tools(facts, draft);
            decide(&Request::new(draft.clone()).unwrap(), &facts, world.at)
        };
        let (whole, still) = (ask(&facts, &world.draft), ask(&unmoved, &world.draft));
        for (member, without, taken) in MEMBERS {
            let is_declared = member.starts_with("action_");
            let (whole, facts) = if is_declared { (&still, &unmoved) } else { (&whole, &facts) };
            if whole.decision.permits() {
                continue;
            }
            let mut draft = world.draft.clone();
            without(&mut draft);
            let less = ask(facts, &draft);
            let reason = whole.reason_code;
            // A declaration can raise a hold, or the denial that replaces a hold.
            let held =
                [Reason::OversightRequired, Reason::ApprovalDeclined, Reason::ApprovalLimitReached];
            let raised = is_declared && held.iter().any(|held| whole.reasons.contains(held));
            let explained = taken.contains(&reason)
                || raised
                || is_of_what_is_named(member, &world, facts, reason);
            assert!(!less.decision.permits() || explained, "{member}: {reason}");
        }
        Ok(())
    });
    if let Err(why) = outcome {
        panic!("{why}");
    }
}

/// No declaration of a caller lowers what records require.
#[test]
fn a_declaration_only_raises() {
    let asked = [
        Reason::OversightRequired,
        Reason::RiskProhibited,
        Reason::ResourceAccessMissing,
        Reason::ProjectAccessMissing,
    ];
    let outcome = runner(8_000).run(&vec(any::<u8>(), 0..700), |bytes| {
        let world = worlds::draw(&bytes);
        let facts = unmoved_by_declarations(&under_one_authority(&world.facts, &UNGUARDED));
        let ask = |draft: &Draft| decide(&Request::new(draft.clone()).unwrap(), &facts, world.at);
        let (action_declaration, action_risk_classification) = (None, None);
        let silent =
            Draft { action_declaration, action_risk_classification, ..world.draft.clone() };
        let silent = ask(&silent);
        if asked.contains(&silent.reason_code) {
            assert!(!ask(&world.draft).decision.permits(), "{}", silent.reason_code);
        }
        Ok(())
    });
    if let Err(why) = outcome {
        panic!("{why}");
    }
}

/// Naming a tool narrows to it: what is refused or held when one of the tools is named is also refused or held
/// when none is.
#[test]
fn a_tool_that_is_not_named_binds_all_the_same() {
    let statements = [&UNGUARDED[..], &ON_DECLARATIONS].concat();
    let outcome = runner(8_000).run(&vec(any::<u8>(), 0..700), |bytes| {
        let mut world = worlds::draw(&bytes);
        world.draft.tool_id = None;
        let facts = under_one_authority(&world.facts, &statements);
        let ask = |draft: &Draft| {
            let facts = world.facts_with_tools(&facts, draft);
            decide(&Request::new(draft.clone()).unwrap(), &facts, world.at)
        };
        let unnamed = ask(&world.draft);
        if !unnamed.decision.permits() {
            return Ok(());
        }
        for tool in &world.tools {
            let named = ask(&Draft { tool_id: Some(tool.id.clone()), ..world.draft.clone() });
            let own = matches!(
                named.reason_code,
                Reason::ToolMismatch | Reason::PermissionMissing | Reason::PermissionGranted
            );
            let performs = tool.live && tool.actions.iter().any(|p| p.covers(&world.draft.action));
            let single = unnamed.tool_id.as_ref().is_some_and(|id| *id != tool.id);
            assert!(own || !performs || single, "{}: {}", tool.id, named.reason_code);
        }
        Ok(())
    });
    if let Err(why) = outcome {
        panic!("{why}");
    }
}

/// If only the request declares, leaving out a part of its declaration counts as the worst.
#[test]
fn leaving_out_how_it_can_be_undone_never_widens() {
    let outcome = runner(4_000).run(&vec(any::<u8>(), 0..700), |bytes| {
        let mut world = worlds::draw(&bytes);
        world.draft.tool_id = None;
        world.tools.clear();
        let facts =
            under_one_authority(&world.facts_with_tools(&world.facts, &world.draft), &UNGUARDED);
        let mut gathered = Gathered::clone(&facts.gathered);
        gathered.model = None;
        gathered.uses.retain(|uses| !matches!(&uses.used, Used::Tool(_) | Used::Model(_)));
        let facts = Facts { gathered: gathered.into(), ..facts };
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
            assert!(!ask(&world.draft).decision.permits(), "{}", whole.reason_code);
        }
        Ok(())
    });
    if let Err(why) = outcome {
        panic!("{why}");
    }
}
