//! Tests that a request avoids no policy by declaring a riskier value than a record declares.

use super::*;
use crate::{
    CompiledPolicy, JoinedTerms, PolicyReference,
    facts::{
        gate::Effective,
        terms::{Declared, Terms},
    },
    levels::{EffectClass, OversightMode, Reversibility, RiskTier},
    request::draft::{ActionDeclaration, ActionRiskClassification},
};

/// A declared field: the name that policies use, a condition on each of the two values, and
/// declarations of a value and of a riskier one.
struct Raise {
    name: &'static str,
    value: Effective,
    riskier: Effective,
    tests_value: &'static str,
    tests_riskier: &'static str,
}

fn raises() -> [Raise; 5] {
    let none = Effective::default();
    let class = |class| Effective { effect_class: Some(class), ..none };
    let kind = |kind| Effective { reversibility: Some(kind), ..none };
    let rollback = |available| Effective { rollback_available: Some(available), ..none };
    let tier = |tier| Effective { risk_tier: Some(tier), ..none };
    let mode = |mode| Effective { required: Some(mode), ..none };
    [
        Raise {
            name: "effect_class",
            value: class(EffectClass::Financial),
            riskier: class(EffectClass::SafetyCritical),
            tests_value: "== \"financial\"",
            tests_riskier: "== \"safety_critical\"",
        },
        Raise {
            name: "reversibility",
            value: kind(Reversibility::Reversible),
            riskier: kind(Reversibility::Compensatable),
            tests_value: "== \"reversible\"",
            tests_riskier: "== \"compensatable\"",
        },
        Raise {
            name: "rollback_available",
            value: rollback(true),
            riskier: rollback(false),
            tests_value: "== true",
            tests_riskier: "== false",
        },
        Raise {
            name: "risk_tier",
            value: tier(RiskTier::Limited),
            riskier: tier(RiskTier::High),
            tests_value: "== \"limited\"",
            tests_riskier: "== \"high\"",
        },
        Raise {
            name: "oversight",
            value: mode(OversightMode::None),
            riskier: mode(OversightMode::TwoPerson),
            tests_value: "== \"none\"",
            tests_riskier: "== \"two_person\"",
        },
    ]
}

type Declarations = (Option<ActionDeclaration>, Option<ActionRiskClassification>);

fn declarations(declared: Effective) -> Declarations {
    let Effective { effect_class, reversibility, rollback_available, risk_tier, required } =
        declared;
    (
        Some(ActionDeclaration { effect_class, reversibility, rollback_available }),
        Some(ActionRiskClassification { risk_tier, required_oversight_mode: required }),
    )
}

fn declaring(id: &str, declared: Effective) -> Tool {
    let (action_declaration, action_risk_classification) = declarations(declared);
    Tool { action_declaration, action_risk_classification, ..tool(id) }
}

fn named(tool: Tool) -> World {
    let mut world = World::sound();
    world.gathered.tool = Some(tool.into());
    world
}

fn unnamed(tools: &[Tool]) -> World {
    let mut world = World::sound();
    world.draft.tool_id = None;
    world.gathered.tool = None;
    world.gathered.joined_terms = JoinedTerms::all(tools).map(Arc::new);
    world
}

fn policy(text: &str, targets: &[&str]) -> Arc<CompiledPolicy> {
    let reference = PolicyReference {
        id: "pol-1".into(),
        version: 1,
        sha256: String::new(),
        applies_to: targets.iter().map(|target| target.parse().unwrap()).collect(),
        effective: Window::default(),
    };
    CompiledPolicy::compile(reference, text).unwrap().into()
}

/// Whether this policy denies the request that makes this declaration.
fn is_denied(mut world: World, asked: Effective, policy: Arc<CompiledPolicy>) -> bool {
    let (declaration, classification) = declarations(asked);
    world.draft.action_declaration = declaration;
    world.draft.action_risk_classification = classification;
    world.gathered.policies = vec![policy];
    world.decide().reason_code == Reason::PolicyDenied
}

const FORBID: &str = "forbid(principal, action, resource);";

fn forbid_when(name: &str, test: &str) -> Arc<CompiledPolicy> {
    let condition = format!("context has {name} && context.{name} {test}");
    policy(&format!("forbid(principal, action, resource) when {{ {condition} }};"), &[])
}

#[test]
fn a_policy_on_the_value_of_a_record_matches_whatever_the_request_declares() {
    for Raise { name, value, riskier, tests_value, tests_riskier } in raises() {
        let silent = tool("tool-2");
        let worlds: [fn(Tool, Tool) -> World; 3] =
            [|own, _| named(own), |own, _| unnamed(&[own]), |own, silent| unnamed(&[own, silent])];
        for world in worlds {
            let world = || world(declaring("tool-1", value), silent.clone());
            for asked in [Effective::default(), value, riskier] {
                assert!(is_denied(world(), asked, forbid_when(name, tests_value)), "{name}");
            }
            let raised = forbid_when(name, tests_riskier);
            assert!(is_denied(world(), riskier, raised.clone()), "{name}: a raise adds a match");
            assert!(!is_denied(world(), value, raised), "{name}");
        }
    }
}

#[test]
fn a_target_on_the_value_of_a_record_matches_whatever_the_request_declares() {
    let class = |class| Effective { effect_class: Some(class), ..Effective::default() };
    let tier = |tier| Effective { risk_tier: Some(tier), ..Effective::default() };
    let targets = [
        ("effect_class:financial", class(EffectClass::Financial)),
        ("effect_class:physical_actuation", class(EffectClass::PhysicalActuation)),
        ("effect_class:safety_critical", class(EffectClass::SafetyCritical)),
        ("risk_tier:limited", tier(RiskTier::Limited)),
        ("risk_tier:high", tier(RiskTier::High)),
        ("risk_tier:unacceptable", tier(RiskTier::Unacceptable)),
    ];
    for of_kind in targets.chunks(3) {
        let [(own_target, own), (between, _), (raised_target, raised)] = of_kind else { panic!() };
        let forbid = |target: &str| policy(FORBID, &[target]);
        let world = || named(declaring("tool-1", *own));
        assert!(is_denied(world(), *raised, forbid(own_target)), "{own_target}");
        assert!(is_denied(world(), *raised, forbid(raised_target)), "{raised_target}");
        assert!(!is_denied(world(), *raised, forbid(between)), "{between}");
        assert!(!is_denied(world(), *own, forbid(raised_target)), "{raised_target}");
    }
}

/// Each tool's own declaration counts without the raise, and not only the strictest.
#[test]
fn a_policy_on_a_milder_tool_matches_whatever_the_request_declares() {
    let class = |class| Effective { effect_class: Some(class), ..Effective::default() };
    let tools = [
        declaring("tool-1", class(EffectClass::DigitalStateChange)),
        declaring("tool-2", class(EffectClass::Financial)),
    ];
    let denied = |target: &str| {
        let asked = class(EffectClass::SafetyCritical);
        is_denied(unnamed(&tools), asked, policy(FORBID, &[target]))
    };
    for target in ["digital_state_change", "financial", "safety_critical"] {
        assert!(denied(&format!("effect_class:{target}")), "{target}");
    }
    assert!(!denied("effect_class:physical_actuation"));
    assert!(!denied("effect_class:informational"));
}

#[test]
fn a_policy_on_the_tier_of_a_model_matches_whatever_the_request_declares() {
    let tier = |tier| Effective { risk_tier: Some(tier), ..Effective::default() };
    let model = |world: &mut World| {
        world.gathered.model = Some(Arc::new(Model {
            id: "model-1".into(),
            live: true,
            risk_tier: Some(RiskTier::Limited),
            actions: Vec::new(),
        }));
    };
    for tools in [&[][..], &[tool("tool-1")]] {
        let mut world = unnamed(tools);
        model(&mut world);
        let limited = policy(FORBID, &["risk_tier:limited"]);
        assert!(is_denied(world, tier(RiskTier::High), limited));
    }
    // The model's tier and the tool's are joined, as both are records.
    let mut world = named(declaring("tool-1", tier(RiskTier::Minimal)));
    model(&mut world);
    let minimal = policy(FORBID, &["risk_tier:minimal"]);
    assert!(!is_denied(world, tier(RiskTier::High), minimal));
}

#[test]
fn a_milder_declaration_is_joined() {
    let class = |class| Effective { effect_class: Some(class), ..Effective::default() };
    let world = || named(declaring("tool-1", class(EffectClass::Financial)));
    let milder = class(EffectClass::Informational);
    assert!(is_denied(world(), milder, policy(FORBID, &["effect_class:financial"])));
    assert!(!is_denied(world(), milder, policy(FORBID, &["effect_class:informational"])));
}

/// If no record declares a field, the request's value is the only one.
#[test]
fn a_field_of_no_record_is_for_the_request_to_declare() {
    let of_tier = Effective { risk_tier: Some(RiskTier::Minimal), ..Effective::default() };
    let asked =
        Effective { effect_class: Some(EffectClass::SafetyCritical), ..Effective::default() };
    let financial = || policy(FORBID, &["effect_class:financial"]);
    for own in [tool("tool-1"), declaring("tool-1", of_tier)] {
        assert!(!is_denied(named(own.clone()), asked, financial()));
        assert!(is_denied(named(own), Effective::default(), financial()), "no class is any class");
    }
    assert!(!is_denied(unnamed(&[]), asked, financial()));
}

/// A raise avoids neither a hold nor an obligation.
#[test]
fn every_effect_of_a_policy_stays() {
    let safe = Effective {
        effect_class: Some(EffectClass::Informational),
        rollback_available: Some(true),
        ..Effective::default()
    };
    let ask = |text: &str| {
        let mut world = named(declaring("tool-1", safe));
        world.draft.action_declaration = Some(ActionDeclaration {
            effect_class: Some(EffectClass::SafetyCritical),
            ..ActionDeclaration::default()
        });
        world.gathered.policies = vec![policy(text, &["effect_class:informational"])];
        world.decide()
    };
    let held = ask("@decision(\"require_approval\") forbid(principal, action, resource);");
    assert_eq!(held.reason_code, Reason::ApprovalThresholdBreach);
    let permitted = ask("@obligation(\"log.full\") permit(principal, action, resource);");
    assert_eq!(permitted.reason_code, Reason::PermissionGranted);
    assert!(permitted.obligations.iter().any(|obligation| obligation == "log.full"));
}

/// Returns tools that declare all combinations of these values.
fn differing(modes: &[OversightMode], tiers: &[RiskTier]) -> Vec<Tool> {
    let mut tools = Vec::new();
    for class in EffectClass::ALL {
        for kind in Reversibility::ALL {
            for mode in modes {
                for tier in tiers {
                    let declared = Effective {
                        effect_class: Some(*class),
                        reversibility: Some(*kind),
                        rollback_available: Some(true),
                        risk_tier: Some(*tier),
                        required: Some(*mode),
                    };
                    tools.push(declaring(&format!("tool-{}", tools.len()), declared));
                }
            }
        }
    }
    tools
}

/// A raise does not reach the limit of declarations, and does not avoid it either.
#[test]
fn the_limit_counts_what_the_tools_declare() {
    let found = |tools: &[Tool], asked: Effective| {
        let mut world = unnamed(tools);
        let (declaration, classification) = declarations(asked);
        world.draft.action_declaration = declaration;
        world.draft.action_risk_classification = classification;
        let read = ["effect_class", "reversibility", "risk_tier", "oversight"];
        let has: Vec<_> = read.iter().map(|name| format!("context has {name}")).collect();
        let text = format!("permit(principal, action, resource) when {{ {} }};", has.join(" && "));
        world.gathered.policies = vec![policy(&text, &[])];
        world.decide().reason_code
    };
    let few = differing(
        &[OversightMode::Auto, OversightMode::None],
        &[RiskTier::Minimal, RiskTier::Limited],
    );
    let one = Effective { required: Some(OversightMode::SingleApprover), ..Effective::default() };
    assert_eq!((few.len(), found(&few, one)), (60, Reason::OversightRequired));
    let many = differing(OversightMode::ALL, &[RiskTier::Minimal]);
    let worst = Effective {
        effect_class: Some(EffectClass::SafetyCritical),
        reversibility: Some(Reversibility::Irreversible),
        ..Effective::default()
    };
    assert_eq!((many.len(), found(&many, worst)), (90, Reason::RuleError));
}

/// A request that raises nothing is evaluated on no more declarations than before.
#[test]
fn only_a_raise_adds_declarations() {
    let own = Effective {
        effect_class: Some(EffectClass::Financial),
        risk_tier: Some(RiskTier::Limited),
        ..Effective::default()
    };
    let own = declaring("tool-1", own);
    let seen = |asked: Effective| {
        let (action_declaration, action_risk_classification) = declarations(asked);
        let draft =
            Draft { action_declaration, action_risk_classification, ..World::sound().draft };
        Declared::of(&draft, None, Terms::Of(&own)).seen_by_policies(Terms::Of(&own)).len()
    };
    let class = |class| Effective { effect_class: Some(class), ..Effective::default() };
    for asked in [
        Effective::default(),
        class(EffectClass::Informational),
        class(EffectClass::Financial),
        Effective { reversibility: Some(Reversibility::Irreversible), ..Effective::default() },
    ] {
        assert_eq!(seen(asked), 1, "{asked:?}");
    }
    assert_eq!(seen(class(EffectClass::SafetyCritical)), 2);
}
