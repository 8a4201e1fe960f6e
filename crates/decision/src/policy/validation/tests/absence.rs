//! Tests which forbids a request can evade by omitting a field.

use super::*;
use crate::Pattern;

fn told(found: &[Finding]) -> Vec<&str> {
    let escapes = found.iter().filter(|one| one.problem.contains("escapes this forbid"));
    escapes.map(|one| one.problem.split('`').nth(1).unwrap_or("a resource")).collect()
}

fn escapes(condition: &str, expected: &[&str]) {
    let text = format!("forbid(principal, action, resource) when {{ {condition} }};");
    let found = all_found(&text);
    assert_eq!(told(&found), expected, "{condition}: {found:#?}");
}

#[test]
fn a_forbid_that_is_false_without_a_member_is_said() {
    for (condition, members) in [
        (
            "context has amount && context.amount.greaterThan(decimal(\"10000.0\"))",
            &["context.amount"][..],
        ),
        ("context has jurisdiction && context.jurisdiction == \"RU\"", &["context.jurisdiction"]),
        ("context has currency && context.currency != \"EUR\"", &["context.currency"]),
        ("context.input has region && context.input.region != \"eu\"", &["context.input.region"]),
        (
            "context.input has region && !([\"eu\", \"uk\"].contains(context.input.region))",
            &["context.input.region"],
        ),
        (
            "context.input has payee.name && context.input.payee.name like \"a*\"",
            &["context.input.payee"],
        ),
        (
            "context.input has payee && context.input.payee has name && context.input.payee.name == \"a\"",
            &["context.input.payee"],
        ),
        ("context has input.rate && context.input.rate > 5", &["context.input.rate"]),
        ("resource has sensitivity && resource.sensitivity == \"high\"", &["resource.sensitivity"]),
        ("resource is Svc::Resource && resource.kind == \"bank_account\"", &["a resource"]),
        ("resource has kind && resource.kind == \"bank_account\"", &["a resource"]),
        // Inside other connectives.
        (
            "(context has purpose && context.purpose == \"a\") || (context has currency && context.currency == \"EUR\")",
            &["context.purpose", "context.currency"],
        ),
        (
            "!(!(context has amount) || context.amount.lessThan(decimal(\"1.0\")))",
            &["context.amount"],
        ),
        (
            "if context has amount then context.amount.greaterThan(decimal(\"1.0\")) else false",
            &["context.amount"],
        ),
        (
            "if !(context has amount) then principal.class == \"system\" else principal.class == \"agent\"",
            &["context.amount"],
        ),
        (
            "(if context has jurisdiction then context.jurisdiction else \"\") == \"RU\"",
            &["context.jurisdiction"],
        ),
        (
            "[\"RU\"].contains(if context has jurisdiction then context.jurisdiction else \"DE\")",
            &["context.jurisdiction"],
        ),
        (
            "context has rollback_available && context.rollback_available == false",
            &["context.rollback_available"],
        ),
        (
            "(context has amount) == true && context.amount.greaterThan(decimal(\"1.0\"))",
            &["context.amount"],
        ),
    ] {
        escapes(condition, members);
    }
}

#[test]
fn it_is_said_at_its_line_with_the_way_to_write_it() {
    let several = all_found(
        "forbid(principal, action, resource) when { context has amount } when { principal.class == \"agent\" }\n\
         unless { context has currency && context.currency == \"EUR\" };",
    );
    assert_eq!(told(&several), ["context.amount"], "{several:#?}");
    let holds = all_found(
        "@decision(\"require_approval\") forbid(principal, action, resource)\n\
         unless { !(context has amount) || context.amount.lessThan(decimal(\"5.0\")) };",
    );
    assert_eq!(told(&holds), ["context.amount"], "{holds:#?}");
    assert_eq!((holds[0].line, holds[0].severity), (2, Severity::Warning));
    let suggestion = holds[0].suggestion.as_deref().unwrap();
    assert!(suggestion.contains("unless { context has amount && … }"), "{suggestion}");
    assert!(suggestion.contains("make `amount` required"), "{suggestion}");
}

#[test]
fn a_forbid_that_absence_does_not_escape_is_not() {
    for condition in [
        "!(context has amount && context.amount.lessThanOrEqual(decimal(\"10000.0\")))",
        "!(context has amount) || context.amount.greaterThan(decimal(\"10000.0\"))",
        "principal.class == \"agent\" && !(context has amount && context.amount.lessThan(decimal(\"1.0\")))",
        "if context has amount then context.amount.greaterThan(decimal(\"1.0\")) else true",
        "(if context has jurisdiction then context.jurisdiction else \"RU\") == \"RU\"",
        "!([\"DE\"].contains(if context has jurisdiction then context.jurisdiction else \"FR\"))",
        "(if context.input has rate then context.input.rate else 100) > 5",
        "(if context has amount then context.amount else decimal(\"99.0\")).greaterThan(decimal(\"9.5\"))",
        "resource is Svc::Tenant || resource.kind == \"bank_account\"",
        "principal has class && principal.class == \"system\"",
        "context has now && context.now > datetime(\"2026-01-01\")",
        "principal.class == \"agent\"",
        // Reading an absent field without a test fails, which denies.
        "context.input.region == \"eu\"",
    ] {
        escapes(condition, &[]);
    }
    for text in [
        "forbid(principal, action, resource)\n\
         unless { context has amount && context has currency && context.currency == \"EUR\" };",
        "@obligation(\"log\") permit(principal, action, resource) when { context has amount };",
    ] {
        assert_eq!(told(&all_found(text)), Vec::<&str>::new(), "{text}");
    }
}

/// If the field is omitted, the request is refused before the policies run.
#[test]
fn what_the_declarations_require_is_always_there() {
    let (statement, declared) = (
        "when { context.input has iban && context.input.iban like \"RU*\" };",
        "forbid(principal, action == Svc::Action::\"payment.execute\", resource)",
    );
    assert_eq!(told(&all_found(&format!("{declared} {statement}"))), Vec::<&str>::new());
    let any = format!("forbid(principal, action, resource) {statement}");
    assert_eq!(told(&all_found(&any)), ["context.input.iban"]);
    let required = |actions: &[&str], requires: &[&str]| {
        let actions = actions.iter().map(|text| text.parse().unwrap()).collect();
        (actions, requires.iter().map(|text| (*text).to_owned()).collect())
    };
    let with = |tools: Vec<(Vec<Pattern>, Vec<String>)>, scope: &str| {
        let known = Known { tools, ..Known::default() };
        let text = format!(
            "forbid(principal, {scope}, resource) when {{ context has amount && \
             context.amount.greaterThan(decimal(\"1.0\")) }};"
        );
        told(&validate(&text, &surroundings(), &known)).is_empty()
    };
    let in_condition = |condition: &str| {
        let known =
            Known { tools: vec![required(&["payment.execute"], &["amount"])], ..Known::default() };
        let text = format!(
            "forbid(principal, action, resource) when {{ {condition} }} when {{ context has amount }};"
        );
        told(&validate(&text, &surroundings(), &known)).is_empty()
    };
    assert!(in_condition(
        "action == Svc::Action::\"payment.execute\" && principal.class == \"agent\""
    ));
    assert!(!in_condition(
        "action == Svc::Action::\"payment.execute\" || principal.class == \"agent\""
    ));
    let (one, group) =
        ("action == Svc::Action::\"payment.execute\"", "action in Svc::Action::\"payment\"");
    let pays = || required(&["payment.execute"], &["amount"]);
    assert!(with(vec![pays()], one));
    assert!(with(vec![required(&["payment.*"], &["amount"])], one));
    assert!(!with(vec![required(&["payment.execute"], &["currency"])], one));
    assert!(!with(vec![pays()], group), "another action below it needs no tool");
    assert!(!with(vec![pays()], "action"));
    assert!(with(vec![required(&["payment", "payment.*"], &["amount"])], group));
    assert!(with(vec![required(&["*"], &["amount"])], "action"));
    // The request can name a tool that doesn't require the field.
    assert!(!with(vec![pays(), required(&["payment.execute"], &[])], one));
    assert!(!with(vec![required(&["*"], &["amount"]), required(&["a.b"], &[])], "action"));
}

#[test]
fn an_unguarded_member_of_a_forbid_is_told_unless() {
    for condition in ["context.amount.greaterThan(decimal(\"1.0\"))", "context.purpose == \"x\""] {
        let found = when(condition);
        let suggestion = found[0].suggestion.as_deref().unwrap_or_default();
        assert!(suggestion.contains("unless { context has "), "{found:#?}");
        let permit =
            super::found(&format!("permit(principal, action, resource) when {{ {condition} }};"));
        assert!(
            !permit[0].suggestion.as_deref().unwrap_or_default().contains("unless"),
            "{permit:#?}"
        );
    }
    let permit =
        super::found("permit(principal, action, resource) when { context.input.missing > 3 };");
    assert_eq!(permit[0].suggestion.as_deref(), Some("test `context.input has missing` first"));
}
