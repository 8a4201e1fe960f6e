//! Leaving out a field never widens the permissions.
//!
//! If docs/reference/decision.md makes a check depend on a field ("the named resource …"), leaving
//! out the field removes only that check. The table lists the refusals that may disappear. A
//! caller's declaration can only raise the requirements, and leaving it out removes only the raised
//! ones. [`a_declaration_only_raises`] tests the opposite direction.

use std::sync::Arc;

use authority_decision::{
    Amount, Draft, Facts, Gathered, Reason, Request, Target, Verdict, decide,
    facts::{Constraints, Tool, Used},
    levels::{EffectClass, OversightMode, Reversibility, RiskTier},
    moment::Window,
    request::{ActionDeclaration, ActionRiskClassification},
};
use authority_ids::EntityRef;
use proptest::{collection::vec, prelude::any};

use super::{
    agree::runner,
    templates,
    worlds::{self, World},
};

type Without = fn(&mut Draft);

/// The refusals that a caller's declaration may add to the records' requirements.
const RAISED: [Reason; 5] = [
    Reason::OversightRequired,
    Reason::RiskProhibited,
    Reason::RiskExceedsDelegation,
    Reason::ResourceAccessMissing,
    Reason::ProjectAccessMissing,
];

/// Each field, how to leave it out, and the refusals that may disappear with it.
const MEMBERS: [(&str, Without, &[Reason]); 15] = [
    (
        "tool_id",
        |draft| draft.tool_id = None,
        // `PermissionMissing` can disappear if the only authority is a uses row on another tool
        // than the named one.
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
            // The purpose has a list of jurisdictions of its own.
            Reason::JurisdictionUnsupported,
        ],
    ),
    (
        "resource_id",
        |draft| draft.resource_id = None,
        // `CapabilityDenied` can disappear if a uses row with allowed = 0 names the resource.
        &[Reason::ResourceAccessMissing, Reason::CapabilityDenied],
    ),
    (
        "workspace_id",
        |draft| draft.workspace_id = None,
        &[
            Reason::WorkspaceAccessMissing,
            Reason::ProjectAccessMissing,
            // The resource or the tool belongs to another workspace than the named one.
            Reason::ResourceAccessMissing,
            Reason::ToolMismatch,
        ],
    ),
    ("project_id", |draft| draft.project_id = None, &[Reason::ProjectAccessMissing]),
    (
        "context.amount",
        |draft| drop(draft.context.remove("amount")),
        // A schema limits the optional field.
        &[Reason::ContextInvalid],
    ),
    ("context.currency", |draft| drop(draft.context.remove("currency")), &[]),
    ("context.jurisdiction", |draft| drop(draft.context.remove("jurisdiction")), &[]),
    (
        "context.note",
        |draft| drop(draft.context.remove("note")),
        // The field has no declared type, or a schema refuses it.
        &[Reason::ContextInvalid],
    ),
    ("approval_id", |draft| draft.approval_id = None, &[]),
    ("on_behalf_of", |draft| draft.on_behalf_of = None, &[Reason::DelegationMismatch]),
    ("tool_definition_digest", |draft| draft.tool_definition_digest = None, &[]),
    (
        "supported_obligations",
        |draft| draft.supported_obligations = None,
        &[Reason::ObligationUnsupported],
    ),
];

/// The numbers of statements without a `has` test. If a field is absent, the core makes reading it
/// an error, which denies. The effect of that is up to the policy's author.
const UNGUARDED: [usize; 7] = [2, 3, 4, 5, 9, 10, 12];

/// The numbers of statements about declarations. They must all still match if the request names no
/// tool, because they do not depend on the caller.
const ON_DECLARATIONS: [usize; 7] = [8, 11, 16, 17, 18, 19, 20];

/// Returns the facts without policies that apply only to certain declarations. Such a policy may no
/// longer apply if the caller's declaration is left out, as its author decided. If no values are
/// declared at all, all such policies apply.
fn unmoved_by_declarations(facts: &Facts) -> Facts {
    let mut gathered = Gathered::clone(&facts.gathered);
    gathered.policies.retain(|policy| {
        let targets = &policy.reference.applies_to;
        !targets.iter().any(|to| matches!(to, Target::EffectClass(_) | Target::RiskTier(_)))
    });
    Facts { gathered: gathered.into(), ..facts.clone() }
}

/// Returns the same world with a single authority. If there are several, a field may change which
/// authority is used: a request that is held under one may be permitted under another.
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

/// Returns whether the refusal is only about the named value: a tool that does not perform the
/// action, an id that a bound does not list, an amount below zero.
fn is_of_what_is_named(member: &str, world: &World, facts: &Facts, reason: Reason) -> bool {
    let draft = &world.draft;
    let unlisted = |id: Option<&EntityRef>| {
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
            // A declaration can cause a hold, or the denial that replaces a hold.
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

/// No declaration of a caller lowers the records' requirements.
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

/// Returns a tool that also declares each field that this tool leaves out.
fn declaring_all(tool: &Arc<Tool>) -> Arc<Tool> {
    let declared = tool.action_declaration.unwrap_or_default();
    let classified = tool.action_risk_classification.unwrap_or_default();
    let mode = classified.required_oversight_mode;
    Arc::new(Tool {
        action_declaration: Some(ActionDeclaration {
            effect_class: declared.effect_class.or(Some(EffectClass::Informational)),
            reversibility: declared.reversibility.or(Some(Reversibility::Reversible)),
            rollback_available: declared.rollback_available.or(Some(true)),
        }),
        action_risk_classification: Some(ActionRiskClassification {
            risk_tier: classified.risk_tier.or(Some(RiskTier::Minimal)),
            required_oversight_mode: mode.or(Some(OversightMode::Auto)),
        }),
        ..Tool::clone(tool)
    })
}

/// If the tools declare every field, a declaration of the caller permits nothing, whatever a policy
/// compares the declared values with.
#[test]
fn a_declaration_avoids_no_policy() {
    let statements = [&UNGUARDED[..], &ON_DECLARATIONS].concat();
    let outcome = runner(8_000).run(&vec(any::<u8>(), 0..700), |bytes| {
        let mut world = worlds::draw(&bytes);
        world.tools = world.tools.iter().map(declaring_all).collect();
        let facts = under_one_authority(&world.facts, &statements);
        let mut facts = world.facts_with_tools(&facts, &world.draft);
        for uses in &mut Arc::make_mut(&mut facts.gathered).uses {
            if let Used::Tool(tool) = &mut uses.used {
                *tool = declaring_all(tool);
            }
        }
        if facts.gathered.tool.is_none() && facts.gathered.joined_terms.is_none() {
            return Ok(());
        }
        let ask = |draft: &Draft| decide(&Request::new(draft.clone()).unwrap(), &facts, world.at);
        let (action_declaration, action_risk_classification) = (None, None);
        let silent =
            Draft { action_declaration, action_risk_classification, ..world.draft.clone() };
        let silent = ask(&silent);
        if !silent.decision.permits() {
            assert!(!ask(&world.draft).decision.permits(), "{}", silent.reason_code);
        }
        Ok(())
    });
    if let Err(why) = outcome {
        panic!("{why}");
    }
}

/// Naming a tool narrows the request to that tool. If a request that names a tool is refused or
/// held, it is also refused or held without the name.
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

/// If only the request declares values, each value that it leaves out counts as the worst one.
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
