//! The policy statements of random worlds, both as Cedar text and as plain data.
//!
//! A policy's id lists its statements (`pol-<statement>-<statement>…`): the naive evaluator needs
//! only the id and no compiled policy.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex},
};

use authority_decision::{CompiledPolicy, PolicyError, PolicyReference, Target, moment::Window};

pub(super) const TEXTS: [&str; 21] = [
    r#"@id("m-0") forbid(principal, action, resource)
       when { context has amount && context.amount.greaterThan(decimal("1000.0")) };"#,
    r#"@id("c-1") @decision("require_approval") @reason("approval_threshold_breach") @approvals("2")
       @obligation("review.after") forbid(principal, action, resource)
       when { context has amount && context.amount.greaterThan(decimal("500.0")) };"#,
    r#"@id("z-2") @reason("constraint_exceeded") forbid(principal, action, resource)
       when { context.amount.greaterThan(decimal("2000.0")) };"#,
    r#"@id("b-3") forbid(principal, action in Svc::Action::"payment", resource)
       unless { context has purpose && context.purpose == "payroll" };"#,
    r#"@id("k-4") @obligation("notify.owner, log.full")
       permit(principal, action == Svc::Action::"payment.execute", resource)
       when { principal.class == "agent" };"#,
    r#"@id("d-5") @reason("capability_denied")
       forbid(principal in Svc::Team::"team-1", action, resource);"#,
    r#"@id("y-6") forbid(principal, action, resource) when { resource.kind == "bank_account" };"#,
    r#"@id("a-7") @decision("require_approval") forbid(principal, action, resource)
       when { context.input has flagged && context.input.flagged };"#,
    r#"@id("h-8") @decision("require_approval") @stop_condition("budget.exhausted,actor.stop_signal")
       forbid(principal, action, resource)
       when { context has risk_tier && context.risk_tier == "high" };"#,
    r#"@id("x-9") forbid(principal, action, resource) when { context.jurisdiction == "RU" };"#,
    r#"@id("e-10") @decision("require_approval") @reason("oversight_required")
       forbid(principal, action, resource) unless { context has delegation };"#,
    r#"@id("f-11") @reason("risk_prohibited") forbid(principal, action, resource)
       when { context has rollback_available && !context.rollback_available
              && context has effect_class && context.effect_class == "financial" };"#,
    r#"@id("g-12") @obligation("log.full") permit(principal, action, resource)
       when { context.now < datetime("2026-01-06T00:00:00Z") };"#,
    r#"@id("l-13") forbid(principal, action in [Svc::Action::"report", Svc::Action::"email.send"],
       resource == Svc::Resource::"res-1");"#,
    // This comparison is always an error, because policies see the country and the subdivision as
    // two fields.
    r#"@id("j-14") forbid(principal, action == Svc::Action::"email.send", resource)
       when { context has jurisdiction && context.jurisdiction == "DE-BY" };"#,
    r#"@id("i-15") forbid(principal, action, resource)
       when { context has subdivision && context.subdivision == "DE-BY" };"#,
    // These statements read declarations: a milder value, and an absent value.
    r#"@id("n-16") forbid(principal, action, resource)
       unless { context has reversibility || context has rollback_available };"#,
    r#"@id("o-17") @decision("require_approval") forbid(principal, action, resource)
       when { context has reversibility && context.reversibility == "compensatable" };"#,
    r#"@id("p-18") @obligation("log.full") forbid(principal, action, resource)
       when { context.risk_tier == "minimal" && context has effect_class };"#,
    r#"@id("q-19") @decision("require_approval") forbid(principal, action, resource)
       when { context has effect_class && context.effect_class == "informational" }
       unless { context has oversight && context.oversight == "single_approver" };"#,
    r#"@id("r-20") @obligation("notify.owner") permit(principal, action, resource)
       when { context has rollback_available && context.rollback_available };"#,
];

pub(super) const TARGETS: [&str; 16] = [
    "*",
    "action:payment.*",
    "action:*",
    "action:report.read",
    "effect_class:financial",
    "effect_class:informational",
    "risk_tier:high",
    "risk_tier:limited",
    "principal_class:agent",
    "principal_class:human",
    "resource_kind:bank_account",
    "purpose:payroll",
    "jurisdiction:DE",
    "jurisdiction:FR",
    "jurisdiction:DE-BY",
    "jurisdiction:DEU",
];

/// Returns the policy with these statements and targets. Each text is compiled once per process.
pub(super) fn policy(
    statements: &[usize],
    rows: &[usize],
    effective: Window,
) -> Arc<CompiledPolicy> {
    static KNOWN: LazyLock<Mutex<HashMap<Vec<usize>, CompiledPolicy>>> =
        LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap();
    let compiled = known.entry(statements.to_vec()).or_insert_with(|| {
        let numbers: Vec<_> = statements.iter().map(ToString::to_string).collect();
        let text: Vec<_> = statements.iter().map(|number| TEXTS[*number]).collect();
        let reference = PolicyReference {
            id: format!("pol-{}", numbers.join("-")).into(),
            version: 1,
            sha256: numbers.join("-"),
            applies_to: Vec::new(),
            effective: Window::default(),
        };
        CompiledPolicy::compile(reference, &text.join("\n")).unwrap()
    });
    let applies_to = rows.iter().map(|row| TARGETS[*row].parse::<Target>().unwrap()).collect();
    Arc::new(compiled.applied_to(applies_to, effective))
}

/// Returns a policy that forbids every action.
pub(super) fn forbid_all() -> Arc<CompiledPolicy> {
    compile("forbid(principal, action, resource);").unwrap()
}

pub(super) fn compile(text: &str) -> Result<Arc<CompiledPolicy>, PolicyError> {
    let reference = PolicyReference {
        id: "pol-text".into(),
        version: 1,
        sha256: "text".to_owned(),
        applies_to: Vec::new(),
        effective: Window::default(),
    };
    CompiledPolicy::compile(reference, text).map(Arc::new)
}
