//! Policies: texts that are refused on write, and what Cedar statements see and cause.

use std::sync::Arc;

use authority_decision::{
    CompiledPolicy, Decision, Draft, Facts, Gathered, Reason, Request, Verdict, decide, facts::*,
    moment::Window, validation::ContextSchema,
};
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{
    permitted::permitted,
    templates::compile,
    worlds::{SUBJECT, TENANT, noonish},
};

/// Returns the facts of a subject that may do everything, in a current team and a past one.
fn facts(policies: Vec<Arc<CompiledPolicy>>) -> Facts {
    let team = |team_id: &str, until| Membership {
        team_id: team_id.into(),
        window: Window { from: None, until },
    };
    let memberships =
        vec![team("team-now", None).into(), team("team-past", Some(noonish())).into()];
    Facts::new(Arc::new(Gathered { memberships, policies, ..permitted() }))
}

#[track_caller]
fn ask(texts: &[&str], context: &Value) -> Verdict {
    let draft = Draft {
        tenant_id: TENANT.into(),
        subject: SUBJECT.into(),
        action: "payment.sepa.execute".to_owned(),
        context: context.as_object().unwrap().clone(),
        ..Draft::default()
    };
    let policies = texts.iter().map(|text| compile(text).unwrap()).collect();
    decide(&Request::new(draft).unwrap(), &facts(policies), noonish())
}

fn when(condition: &str, context: &Value) -> (Decision, Reason) {
    let verdict =
        ask(&[&format!("forbid(principal, action, resource) when {{ {condition} }};")], context);
    (verdict.decision, verdict.reason_code)
}

const FORBIDDEN: (Decision, Reason) = (Decision::Deny, Reason::PolicyDenied);
const ERRED: (Decision, Reason) = (Decision::Deny, Reason::RuleError);
const FREE: (Decision, Reason) = (Decision::AllowWithConstraints, Reason::PermissionGranted);

#[test]
fn sees_the_request() {
    let amount = |amount: f64| json!({"amount": amount, "currency": "EUR", "jurisdiction": "DE"});
    let above = r#"context.amount.greaterThan(decimal("100.1"))"#;
    assert_eq!(when(above, &amount(100.11)), FORBIDDEN);
    assert_eq!(when(above, &amount(100.1)), FREE);
    assert_eq!(when(above, &json!({})), ERRED);
    assert_eq!(when(&format!("context has amount && {above}"), &json!({})), FREE);
    assert_eq!(when("context.input.amount > 100", &json!({"amount": 101.0})), FORBIDDEN);
    assert_eq!(
        when(r#"context.currency == "EUR" && context.jurisdiction == "DE""#, &amount(1.0)),
        FORBIDDEN
    );
    assert_eq!(when(r#"context.purpose == "x""#, &json!({})), ERRED);
    assert_eq!(
        when(r#"context.now == datetime("2026-01-05T10:30:00.250Z")"#, &json!({})),
        FORBIDDEN
    );
    assert_eq!(
        when(r#"principal.class == "agent" && principal.name == "a""#, &json!({})),
        FORBIDDEN
    );
    assert_eq!(when(r#"principal in Svc::Team::"team-now""#, &json!({})), FORBIDDEN);
    assert_eq!(when(r#"principal in Svc::Team::"team-past""#, &json!({})), FREE);
    assert_eq!(when(r#"action in Svc::Action::"payment.sepa""#, &json!({})), FORBIDDEN);
    assert_eq!(when(r#"action in Svc::Action::"pay""#, &json!({})), FREE);
    assert_eq!(when(r#"resource == Svc::Tenant::"svc:tenant:t""#, &json!({})), FORBIDDEN);
}

/// Requests with shared facts share entities. Policies must still see each request's own values.
#[test]
fn shared_facts_show_each_request_its_own() {
    let draft = |action: &str| Draft {
        tenant_id: TENANT.into(),
        subject: SUBJECT.into(),
        action: action.to_owned(),
        ..Draft::default()
    };
    let judged = |facts: &Facts, action: &str, at| {
        decide(&Request::new(draft(action)).unwrap(), facts, at).reason_code
    };
    let of = |condition: &str| {
        let text = format!("forbid(principal, action, resource) when {{ {condition} }};");
        facts(vec![compile(&text).unwrap()])
    };
    let (before, denied, free) =
        (noonish() - TimeDelta::hours(1), Reason::PolicyDenied, Reason::PermissionGranted);
    let past = of(r#"principal in Svc::Team::"team-past""#);
    assert_eq!(judged(&past, "payment.sepa.execute", before), denied);
    assert_eq!(judged(&past, "payment.sepa.execute", noonish()), free);
    assert_eq!(judged(&past, "payment.sepa.execute", before), denied);
    let named = of(r#"action == Svc::Action::"payment.sepa.recall""#);
    assert_eq!(judged(&named, "payment.sepa.execute", noonish()), free);
    assert_eq!(judged(&named, "payment.sepa.recall", noonish()), denied);
    // A change of the facts in place also applies to the entities that policies see.
    let mut renamed = of(r#"principal.name == "b""#);
    assert_eq!(judged(&renamed, "payment.sepa.execute", noonish()), free);
    let gathered = Arc::get_mut(&mut renamed.gathered).unwrap();
    Arc::make_mut(gathered.subject.as_mut().unwrap()).name = "b".to_owned();
    assert_eq!(judged(&renamed, "payment.sepa.execute", noonish()), denied);
}

#[test]
fn unless_guards() {
    let text = r#"forbid(principal, action, resource)
        unless { context has amount && context.amount.lessThan(decimal("100.0")) };"#;
    assert_eq!(ask(&[text], &json!({"amount": 99.99})).decision, Decision::AllowWithConstraints);
    assert_eq!(ask(&[text], &json!({"amount": 100})).reason_code, Reason::PolicyDenied);
    assert_eq!(ask(&[text], &json!({})).reason_code, Reason::PolicyDenied);
}

#[test]
fn what_cedar_cannot_hold_errs_when_compared() {
    let rate = |rate: Value| json!({"rate": rate});
    assert_eq!(when("context.input.rate > 5", &rate(json!(6))), FORBIDDEN);
    assert_eq!(when("context.input.rate > 5", &rate(json!(0.00001))), ERRED);
    assert_eq!(when("context.input.rate > 5", &rate(json!(1.5))), ERRED);
    let exact = r#"context.input.rate.greaterThan(decimal("0.5"))"#;
    assert_eq!(when(exact, &rate(json!(0.5001))), FORBIDDEN);
    assert_eq!(when(exact, &rate(json!(0.00001))), ERRED);
    assert_eq!(when("context.input has rate", &rate(Value::Null)), FREE);
    assert_eq!(when("context.input.list.contains(2)", &json!({"list": [1, null, 2]})), FORBIDDEN);
    assert_eq!(when(r#"context.input.deep.er == "x""#, &json!({"deep": {"er": "x"}})), FORBIDDEN);
}

#[test]
fn what_the_tenant_declares_decimal_is_always_one() {
    let text = r#"forbid(principal, action, resource)
        when { context.input.rate.greaterThan(decimal("5.0")) };"#;
    let declared = json!({"payment.*": {"rate": "decimal", "lines": "set<decimal>"}});
    let declared = ContextSchema::of(declared).unwrap();
    let judged = |declared: Option<&ContextSchema>, rate: Value| {
        let mut facts = facts(vec![compile(text).unwrap()]);
        let gathered = Arc::make_mut(&mut facts.gathered);
        let tenant = Arc::make_mut(gathered.tenant.as_mut().unwrap());
        tenant.context_schema = declared.cloned().map(Arc::new);
        let draft = Draft {
            tenant_id: TENANT.into(),
            subject: SUBJECT.into(),
            action: "payment.sepa.execute".to_owned(),
            context: json!({"rate": rate}).as_object().unwrap().clone(),
            ..Draft::default()
        };
        let verdict = decide(&Request::new(draft).unwrap(), &facts, noonish());
        (verdict.decision, verdict.reason_code)
    };
    assert_eq!(judged(Some(&declared), json!(6)), FORBIDDEN);
    assert_eq!(judged(Some(&declared), json!(5)), FREE);
    assert_eq!(judged(Some(&declared), json!(5.5)), FORBIDDEN);
    let invalid = (Decision::Deny, Reason::ContextInvalid);
    assert_eq!(judged(Some(&declared), json!(0.00001)), invalid);
    assert_eq!(judged(Some(&declared), json!("6")), invalid);
    assert_eq!(judged(None, json!(6)), ERRED);
    // The schema is sealed with the facts: a replay uses the same one.
    let sealed = serde_json::to_value(&declared).unwrap();
    assert_eq!(serde_json::from_value::<ContextSchema>(sealed).unwrap(), declared);
}

#[test]
fn deny_comes_before_hold_and_in_order_of_id() {
    let hold = r#"@id("a") @decision("require_approval") @approvals("3") @advice("ask finance")
        forbid(principal, action, resource);"#;
    let deny = r#"@id("c") @reason("capability_denied") forbid(principal, action, resource);"#;
    let other = r#"@id("b") @advice("never") forbid(principal, action, resource);"#;
    let first = ask(&[hold], &json!({}));
    assert_eq!(
        (first.decision, first.reason_code),
        (Decision::RequireApproval, Reason::ApprovalThresholdBreach)
    );
    assert_eq!(first.approvals_needed.unwrap().count, 3);
    assert_eq!(first.advice, ["ask finance"]);
    for texts in [[hold, deny, other], [other, deny, hold], [deny, hold, other]] {
        let denied = ask(&texts, &json!({}));
        assert_eq!((denied.decision, denied.reason_code), FORBIDDEN);
        assert_eq!(denied.reasons, [Reason::PolicyDenied, Reason::CapabilityDenied]);
        assert_eq!(denied.advice, ["never"]);
        assert!(denied.obligations.is_empty() && denied.approvals_needed.is_none());
    }
}

#[test]
fn an_error_in_any_applicable_policy_denies() {
    let permit = "permit(principal, action, resource) when { context.nothing };";
    assert_eq!(ask(&[permit], &json!({})).reason_code, Reason::RuleError);
    let elsewhere = r#"permit(principal, action == Svc::Action::"report.read", resource)
        when { context.nothing };"#;
    assert_eq!(ask(&[elsewhere], &json!({})).decision, Decision::AllowWithConstraints);
}

#[test]
fn permits_add_constraints() {
    let text = r#"@obligation("notify.owner,log.full") @stop_condition("budget.exhausted")
        permit(principal, action, resource); @obligation("log.full, audit.emit")
        permit(principal, action, resource);"#;
    let verdict = ask(&[text], &json!({}));
    assert_eq!(verdict.obligations, ["audit.emit", "notify.owner", "log.full"]);
    assert_eq!(verdict.stop_conditions, ["actor.stop_signal", "budget.exhausted"]);
    assert_eq!(verdict.decision.folded(), Decision::Allow);
}

fn refusal(text: &str) -> (usize, usize, String) {
    let error = compile(text).unwrap_err();
    (error.line, error.column, error.problem)
}

#[test]
fn locates_errors_in_a_text() {
    let good = "permit(principal, action, resource);\n";
    for (text, line, column, part) in [
        ("forbid(principal action, resource);".to_owned(), 1, 18, "unexpected token"),
        (format!("{good}// a comment; with \"quotes\n  forbid(principal, action, resource) when {{ 1 + }};"), 3, 50, ""),
        (format!("{good}  @reason(\"nonsense\") forbid(principal, action, resource);"), 2, 3, "not a reason code"),
        (format!("{good}@colour(\"red\") permit(principal, action, resource);"), 2, 1, "unknown annotation"),
        (format!("{good}@decision(\"require_approval\") permit(principal, action, resource);"), 2, 1, "on a forbid"),
        (format!("{good}@decision(\"deny\") forbid(principal, action, resource);"), 2, 1, "require_approval"),
        (format!("{good}@approvals(\"2\") forbid(principal, action, resource);"), 2, 1, "beside"),
        ("@decision(\"require_approval\") @approvals(\"0\") forbid(principal, action, resource);".to_owned(), 1, 31, "from 1 to 16"),
        (format!("{good}permit(principal == ?principal, action, resource);"), 2, 1, "templates"),
        ("forbid(principal == User::\"x\", action, resource);".to_owned(), 1, 21, "unknown entity type `User`"),
        ("forbid(principal is Svc::Person, action, resource);".to_owned(), 1, 21, "unknown entity type"),
        ("forbid(principal, action, resource) when { principal in Team::\"x\" };".to_owned(), 1, 57, "unknown entity type"),
        ("forbid(principal, action == Svc::Action::\"payment.*\", resource);".to_owned(), 1, 29, "is not an action"),
        ("forbid(principal, action in Svc::Team::\"x\", resource);".to_owned(), 1, 29, "Action"),
        (String::new(), 1, 1, "no statement"),
        ("forbid(principal, action, resource)".to_owned(), 1, 36, ""),
    ] {
        let (at_line, at_column, problem) = refusal(&text);
        assert!(problem.contains(part), "{text}: {problem}");
        assert_eq!((at_line, at_column), (line, column), "{text}: {problem}");
    }
}

/// Texts that would exhaust a parser's stack are refused, even on a stack as small as a worker's.
#[test]
fn refuses_what_would_exhaust_the_stack() {
    let wrap =
        |condition: &str| format!("forbid(principal, action, resource) when {{ {condition} }};");
    let texts = [
        wrap(&format!("{}1{} == 1", "(".repeat(60_000), ")".repeat(60_000))),
        wrap(&format!("{}1{} == 1", "[".repeat(15), "]".repeat(15))),
        wrap(&format!("{}1{} == 1", "{a:".repeat(15), "}".repeat(15))),
        wrap(&"true || ".repeat(8_000)),
        wrap(&format!("{}true", "true || ".repeat(59))),
        wrap(&format!("{}true", "if true then true else ".repeat(59))),
        wrap(&format!("context{} == 1", ".a".repeat(59))),
        wrap(&format!("{}1 == 1", "1 + ".repeat(59))),
        "@a".repeat(30_000),
        "(".repeat(70_000),
        "\"".to_owned(),
        "/".repeat(70_000),
    ];
    let worker = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    let judged = worker.spawn(move || {
        for text in texts {
            if let Ok(policy) = compile(&text) {
                let draft = Draft {
                    tenant_id: TENANT.into(),
                    subject: SUBJECT.into(),
                    action: "a.b".to_owned(),
                    ..Draft::default()
                };
                decide(&Request::new(draft).unwrap(), &facts(vec![policy]), noonish());
            }
        }
    });
    judged.unwrap().join().unwrap();
}
