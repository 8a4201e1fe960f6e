//! Tests that the terms of all tools for an action bind a request that does not name a tool.

use super::*;
use crate::{
    CompiledPolicy, JoinedTerms, PolicyReference, Target,
    authority::trace_step::TraceStep,
    facts::bounds::Bounds,
    levels::{EffectClass, OversightMode, Reversibility, RiskTier},
    request::draft::{ActionDeclaration, ActionRiskClassification},
};

/// Returns a tool that declares every field and has no requirements.
fn tame(id: &str) -> Tool {
    Tool {
        access_level: Some(AccessLevel::Read),
        action_declaration: Some(ActionDeclaration {
            effect_class: Some(EffectClass::Informational),
            reversibility: Some(Reversibility::Reversible),
            rollback_available: Some(true),
        }),
        action_risk_classification: Some(tier(RiskTier::Minimal)),
        ..tool(id)
    }
}

fn tier(risk_tier: RiskTier) -> ActionRiskClassification {
    ActionRiskClassification { risk_tier: Some(risk_tier), required_oversight_mode: None }
}

fn held(mode: OversightMode) -> ActionRiskClassification {
    let (risk_tier, required_oversight_mode) = (Some(RiskTier::Minimal), Some(mode));
    ActionRiskClassification { risk_tier, required_oversight_mode }
}

/// Returns the valid world in which these tools perform the action and the request names no tool.
fn unnamed(tools: &[Tool]) -> World {
    let mut world = World::sound();
    world.draft.tool_id = None;
    world.gathered.tool = None;
    world.gathered.joined_terms = JoinedTerms::all(tools).map(Arc::new);
    world
}

fn found(tools: &[Tool]) -> Reason {
    unnamed(tools).decide().reason_code
}

#[test]
fn the_strictest_of_each_term_binds() {
    let base = tame("tool-1");
    assert_eq!(found(&[]), Reason::PermissionGranted);
    assert_eq!(found(std::slice::from_ref(&base)), Reason::PermissionGranted);
    let beside = |other: Tool| {
        let (one, two) = (found(&[base.clone(), other.clone()]), found(&[other, base.clone()]));
        assert_eq!(one, two, "in any order");
        one
    };
    let other = tame("tool-2");
    let prohibited =
        Tool { action_risk_classification: Some(tier(RiskTier::Prohibited)), ..other.clone() };
    assert_eq!(beside(prohibited), Reason::RiskProhibited);
    let two =
        Tool { action_risk_classification: Some(held(OversightMode::TwoPerson)), ..other.clone() };
    assert_eq!(beside(two), Reason::OversightRequired);
    let requires = Tool { requires: vec!["iban".to_owned()], ..other.clone() };
    assert_eq!(beside(requires), Reason::ContextIncomplete);
    let admin = Tool { access_level: Some(AccessLevel::Admin), ..other.clone() };
    assert_eq!(beside(admin), Reason::ResourceAccessMissing);
    let undeclared = Tool { action_declaration: None, access_level: None, ..other };
    assert_eq!(beside(undeclared), Reason::PermissionGranted, "minimal risk, no money");
}

#[test]
fn what_one_tool_leaves_out_is_not_taken_from_another() {
    // Alone, this tool counts as irreversible and of limited risk, which requires one approver.
    let partial = Tool {
        action_declaration: Some(ActionDeclaration {
            effect_class: Some(EffectClass::Financial),
            ..<_>::default()
        }),
        ..tool("tool-2")
    };
    assert_eq!(found(std::slice::from_ref(&partial)), Reason::OversightRequired);
    assert_eq!(found(&[tame("tool-1"), partial]), Reason::OversightRequired);
    let mut world = unnamed(&[tame("tool-1"), tool("tool-2")]);
    let risk = |world: &mut World| {
        let bounds = Bounds { max_risk_tier: Some(RiskTier::Limited), ..Bounds::default() };
        world.link(0).bounds = bounds;
    };
    risk(&mut world);
    assert_eq!(world.decide().reason_code, Reason::RiskExceedsDelegation, "one tool has no tier");
    world.draft.action_risk_classification = Some(tier(RiskTier::Limited));
    world.draft.action_declaration =
        Some(ActionDeclaration { rollback_available: Some(true), ..<_>::default() });
    assert_eq!(world.decide().reason_code, Reason::PermissionGranted);
    let mut world = unnamed(&[tame("tool-1"), tool("tool-2")]);
    Arc::make_mut(world.gathered.tenant.as_mut().unwrap()).require_declaration = true;
    assert_eq!(world.decide().reason_code, Reason::DeclarationRequired, "a tool is undeclared");
}

/// A field that a record omits counts as the worst value. The caller's declaration does not change
/// that.
#[test]
fn a_caller_fills_no_gap_of_a_record() {
    let kind = ActionDeclaration {
        effect_class: Some(EffectClass::Informational),
        reversibility: Some(Reversibility::Reversible),
        rollback_available: Some(true),
    };
    let partial =
        Tool { action_risk_classification: Some(tier(RiskTier::Limited)), ..tool("tool-1") };
    let decided = |mut world: World| {
        world.draft.action_declaration = Some(kind);
        world.draft.action_risk_classification = Some(tier(RiskTier::Minimal));
        world.decide().reason_code
    };
    assert_eq!(decided(unnamed(std::slice::from_ref(&partial))), Reason::OversightRequired);
    let mut named = World::sound();
    named.gathered.tool = Some(partial.into());
    assert_eq!(decided(named), Reason::OversightRequired);
    let mut by_model = unnamed(&[]);
    by_model.gathered.model = Some(Arc::new(Model {
        id: "model-1".into(),
        live: true,
        risk_tier: Some(RiskTier::Limited),
        actions: Vec::new(),
    }));
    assert_eq!(decided(by_model), Reason::OversightRequired);
    assert_eq!(decided(unnamed(&[tool("tool-1")])), Reason::PermissionGranted, "no tool declares");
}

#[test]
fn a_uses_row_on_a_tool_narrows_to_it() {
    let wild =
        Tool { action_risk_classification: Some(tier(RiskTier::Prohibited)), ..tool("tool-2") };
    let mut world = unnamed(&[tame("tool-1"), wild]);
    world.draft.delegation_id = None;
    world.draft.resource_id = None;
    world.gathered.delegations.clear();
    world.uses("uses-1", Used::Tool(tame("tool-1").into()));
    let verdict = world.decide();
    assert_eq!(verdict.reason_code, Reason::PermissionGranted);
    assert_eq!(verdict.tool_id.as_deref(), Some("tool-1"));
    // A `uses` row on the action itself does not limit the permit to a tool.
    world.gathered.uses.clear();
    world.uses("uses-1", Used::Action(Pattern::All));
    assert_eq!(world.decide().reason_code, Reason::RiskProhibited);
}

#[test]
fn a_verdict_names_the_tool_that_it_is_for() {
    assert_eq!(World::sound().decide().tool_id.as_deref(), Some("tool-1"));
    assert_eq!(unnamed(&[tame("tool-1")]).decide().tool_id, None);
    let mut held = World::sound();
    held.draft.action_risk_classification = Some(tier(RiskTier::High));
    assert_eq!(held.decide().tool_id.as_deref(), Some("tool-1"));
    held.draft.action_risk_classification = Some(tier(RiskTier::Prohibited));
    assert_eq!(held.decide().tool_id, None, "a denial is not limited to a tool");
}

fn policy(text: &str, applies_to: Vec<Target>) -> Arc<CompiledPolicy> {
    let reference = PolicyReference {
        id: "pol-1".into(),
        version: 1,
        sha256: String::new(),
        applies_to,
        effective: Window::default(),
    };
    CompiledPolicy::compile(reference, text).unwrap().into()
}

/// A policy may test for a milder value, or for an absent one. Leaving the tool out of the request
/// does not avoid such a policy.
#[test]
fn a_policy_is_evaluated_on_what_each_tool_declares() {
    let all = tame("tool-1");
    let mut other = tame("tool-2");
    other.action_declaration.as_mut().unwrap().reversibility = Some(Reversibility::Compensatable);
    other.action_risk_classification = Some(tier(RiskTier::Limited));
    let silent = tool("tool-3");
    let found = |condition: &str, tools: &[Tool]| {
        let mut world = unnamed(tools);
        world.draft.explain = true;
        let text = format!("forbid(principal, action, resource) when {{ {condition} }};");
        world.gathered.policies = vec![policy(&text, Vec::new())];
        world.decide().reason_code
    };
    for condition in [
        "!(context has reversibility)",
        "!(context has rollback_available)",
        "!(context has effect_class)",
        "!(context has risk_tier)",
        "context has reversibility && context.reversibility == \"reversible\"",
        "context has reversibility && context.reversibility == \"compensatable\"",
        "context has risk_tier && context.risk_tier == \"minimal\"",
        "context has risk_tier && context.risk_tier != \"minimal\"",
        "context has risk_tier && context has reversibility && context.risk_tier == \"minimal\" \
         && context.reversibility == \"reversible\"",
        "!(context has oversight)",
    ] {
        let tools = [all.clone(), other.clone(), silent.clone()];
        assert_eq!(found(condition, &tools), Reason::PolicyDenied, "{condition}");
    }
    let unguarded = "context.reversibility == \"irreversible\"";
    assert_eq!(found(unguarded, &[all.clone(), other.clone()]), Reason::PermissionGranted);
    assert_eq!(found(unguarded, &[all.clone(), silent]), Reason::RuleError, "one tool omits it");
    let none = "context has risk_tier && context.risk_tier == \"high\"";
    assert_eq!(found(none, &[all, other]), Reason::PermissionGranted);
}

/// The request's declaration counts for every tool.
#[test]
fn what_is_asked_raises_what_each_tool_declares() {
    let mut world = unnamed(&[tame("tool-1"), tool("tool-2")]);
    let text = "forbid(principal, action, resource)
                when { !(context has risk_tier) || context.risk_tier == \"high\" };";
    world.gathered.policies = vec![policy(text, Vec::new())];
    assert_eq!(world.decide().reason_code, Reason::PolicyDenied);
    world.draft.action_risk_classification = Some(tier(RiskTier::Limited));
    world.draft.action_declaration =
        Some(ActionDeclaration { rollback_available: Some(true), ..<_>::default() });
    assert_eq!(world.decide().reason_code, Reason::PermissionGranted);
    world.draft.action_risk_classification = Some(tier(RiskTier::High));
    assert_eq!(world.decide().reason_code, Reason::PolicyDenied);
}

/// If tools declare more values than policies can be evaluated on, the request is denied. This only
/// concerns values that a policy reads.
#[test]
fn too_many_declarations_deny_where_a_policy_reads_them() {
    let mut tools = Vec::new();
    for effect_class in EffectClass::ALL {
        for reversibility in Reversibility::ALL {
            for mode in OversightMode::ALL {
                let mut tool = tame(&format!("tool-{}", tools.len()));
                let declaration = tool.action_declaration.as_mut().unwrap();
                declaration.effect_class = Some(*effect_class);
                declaration.reversibility = Some(*reversibility);
                tool.action_risk_classification = Some(held(*mode));
                tools.push(tool);
            }
        }
    }
    let found = |members: &[&str]| {
        let has: Vec<_> = members.iter().map(|name| format!("context has {name}")).collect();
        let text = format!("permit(principal, action, resource) when {{ {} }};", has.join(" && "));
        let mut world = unnamed(&tools);
        world.gathered.policies = vec![policy(&text, Vec::new())];
        world.decide().reason_code
    };
    assert_eq!(tools.len(), 90);
    let read = ["effect_class", "reversibility", "oversight"];
    assert_eq!(found(&read), Reason::RuleError);
    assert_eq!(found(&read[..2]), Reason::OversightRequired, "one tool requires two people");
}

#[test]
fn a_target_matches_whichever_tool_is_used() {
    let text = "forbid(principal, action, resource);";
    let denied = |target: &str, tools: &[Tool], asked: Option<EffectClass>| {
        let mut world = unnamed(tools);
        world.gathered.policies = vec![policy(text, vec![target.parse().unwrap()])];
        let full = |effect_class| ActionDeclaration {
            effect_class: Some(effect_class),
            reversibility: Some(Reversibility::Reversible),
            rollback_available: Some(true),
        };
        world.draft.action_declaration = asked.map(full);
        world.decide().reason_code == Reason::PolicyDenied
    };
    let safety = |id| {
        let mut tool = tame(id);
        tool.action_declaration.as_mut().unwrap().effect_class = Some(EffectClass::SafetyCritical);
        tool
    };
    let both = [tame("tool-1"), safety("tool-2")];
    assert!(denied("effect_class:informational", &both, None));
    assert!(denied("effect_class:safety_critical", &both, None));
    assert!(!denied("effect_class:financial", &both, None));
    assert!(denied("effect_class:financial", &both, Some(EffectClass::Financial)));
    assert!(denied("effect_class:informational", &both, Some(EffectClass::Financial)));
    assert!(!denied("effect_class:digital_state_change", &both, Some(EffectClass::Financial)));
    assert!(denied("risk_tier:minimal", &both, None) && !denied("risk_tier:high", &both, None));
    let silent = [tame("tool-1"), tool("tool-2")];
    assert!(denied("effect_class:financial", &silent, None), "one tool omits it");
}

#[test]
fn the_trace_names_the_tool_that_sets_each_term() {
    let risky = Tool {
        action_risk_classification: Some(held(OversightMode::TwoPerson)),
        requires: vec!["amount".to_owned()],
        ..tame("tool-2")
    };
    let mut world = unnamed(&[tame("tool-1"), risky]);
    world.draft.explain = true;
    let trace = world.decide().trace.unwrap();
    let step = |id: &str| -> TraceStep {
        let mut steps = trace[0].steps.iter().filter(|step| step.kind == "tool");
        steps.find(|step| step.id == id).cloned().unwrap()
    };
    let second = step("tool-2").detail;
    assert!(second.contains("required_oversight_mode two_person"), "{second}");
    assert!(
        second.contains("requires `amount`") && second.contains("only its own terms"),
        "{second}"
    );
    assert!(step("tool-1").detail.contains("effect_class informational"));
}

#[test]
fn the_refusal_of_a_reader_says_what_gives_less_than_execute() {
    let mut world = unnamed(&[]);
    world.draft.explain = true;
    world.draft.action_declaration = Some(ActionDeclaration {
        effect_class: Some(EffectClass::Informational),
        ..<_>::default()
    });
    for grant in &mut world.gathered.grants {
        Arc::make_mut(grant).access_level = AccessLevel::Read;
    }
    let verdict = world.decide();
    assert_eq!(verdict.reason_code, Reason::ResourceAccessMissing);
    let steps = &verdict.trace.unwrap()[0].steps;
    let step = steps.iter().find(|step| step.kind == "resource").unwrap();
    assert!(step.detail.starts_with("execute is needed and read is granted; only a tool's record"));
    assert!(Reason::ResourceAccessMissing.sentence().contains("only a tool's record"));
}
