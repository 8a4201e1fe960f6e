//! Tests the validator's findings on examples from people who write policies.

use serde_json::json;

use super::*;
use crate::request::input_schema::InputAt;

mod absence;
mod names;

fn surroundings() -> Surroundings {
    let schema = json!({"type": "object", "required": ["iban"], "properties": {
        "iban": {"type": "string"}, "lines": {"type": "array", "items": {"type": "string"}},
        "rate": {"type": "number"}, "urgent": {"type": "boolean"}}});
    let actions = vec!["payment.execute".parse().unwrap(), "payment.refund".parse().unwrap()];
    let tool = ToolInput::of(actions, Some(&schema), InputAt::Context);
    Surroundings::new(ContextSchema::default(), vec![tool])
}

fn all_found(text: &str) -> Vec<Finding> {
    validate(text, &surroundings(), &Known::default())
}

/// Leaves out warnings about omitted fields, which have a separate test file.
fn found(text: &str) -> Vec<Finding> {
    let mut found = all_found(text);
    found.retain(|one| !one.problem.contains("escapes this forbid"));
    found
}

fn when(condition: &str) -> Vec<Finding> {
    found(&format!("forbid(principal, action, resource) when {{ {condition} }};"))
}

fn errors(found: &[Finding]) -> Vec<&Finding> {
    found.iter().filter(|one| one.severity == Severity::Error).collect()
}

#[test]
fn mistakes_are_errors_with_place_and_suggestion() {
    for (condition, column, part, suggestion) in [
        ("context has amount && context.amount > 10000", 66, "saw decimal", "greaterThan(decimal"),
        (
            "context.amount.greaterThan(decimal(\"1.0\"))",
            44,
            "optional attribute `amount`",
            "has amount",
        ),
        ("context has amount && context.amout == context.amount", 66, "`amout`", "amount"),
        ("context.amout.greaterThan(decimal(\"1.0\"))", 44, "`amout`", "amount"),
        ("principal.clas == \"agent\"", 44, "`clas`", "class"),
        ("1 + \"a\" == 2", 48, "expected long but saw string", "concatenation"),
        ("resource.kind == \"bank_account\"", 44, "`kind`", ""),
        ("context.purpose == \"x\"", 44, "optional attribute `purpose`", "has purpose"),
        ("principal in Svc::Teem::\"a\"", 57, "Svc::Teem", "Svc::Team"),
        ("context has currency && context.currency == 1", 68, "not compatible", ""),
    ] {
        let found = when(condition);
        let one =
            found.iter().find(|one| one.problem.to_lowercase().contains(&part.to_lowercase()));
        let one = one.unwrap_or_else(|| panic!("{condition}: {found:#?}"));
        assert_eq!((one.severity, one.line, one.column), (Severity::Error, 1, column), "{one:#?}");
        let told = one.suggestion.clone().unwrap_or_default() + &one.problem;
        assert!(told.contains(suggestion), "{condition}: {one:#?}");
    }
}

#[test]
fn valid_policies_have_no_findings() {
    for condition in [
        "context has amount && context.amount.greaterThan(decimal(\"10000.0\"))",
        "principal.class == \"agent\" && principal in Svc::Team::\"any\"",
        "resource is Svc::Resource && resource.kind == \"bank_account\"",
        "resource has sensitivity && resource.sensitivity == \"high\"",
        "context has jurisdiction && [\"DE\", \"FR\"].contains(context.jurisdiction)",
        "context has subdivision && context.subdivision == \"DE-BY\"",
        "context.input has rate && context.input.rate > 5",
        "context.input has payee && context.input.payee has name && context.input.payee.name like \"a*\"",
        "context has input.payee.name && context.input.payee.name like \"a*\"",
        "context.now > datetime(\"2026-01-01\")",
        "action in Svc::Action::\"payment\" || action == Svc::Action::\"report.read\"",
    ] {
        assert_eq!(when(condition), [], "{condition}");
    }
    assert_eq!(
        found(
            "@reason(\"x_four_eyes\") forbid(principal, action in Svc::Action::\"x\", resource);"
        ),
        []
    );
}

#[test]
fn all_faults_at_once_each_at_its_place() {
    let text = "@reason(\"nonsense\")\nforbid(principal, action, resource)\nwhen { principal.clas == 1 };\n\
                @id(\"ok\") @colour(\"red\") permit(principal is Svc::Person, action, resource);\n\
                forbid(principal, action == Svc::Action::\"payment.*\", resource)\n\
                when { context.amout == 1 && context.currenzy == 2 };";
    let found = found(text);
    let places: Vec<_> = errors(&found).iter().map(|one| (one.line, one.column)).collect();
    for place in [(1, 1), (3, 8), (4, 11), (5, 29), (6, 8), (6, 30)] {
        assert!(places.contains(&place), "{place:?} of {places:?}\n{found:#?}");
    }
    assert!(places.iter().any(|(line, column)| *line == 4 && *column > 20), "{found:#?}");
    let broken =
        "permit(principal action, resource);\nforbid(principal, action, resource) when { 1 + };";
    let found = super::tests::found(broken);
    assert!(
        found.iter().any(|one| one.line == 1) && found.iter().any(|one| one.line == 2),
        "{found:#?}"
    );
}

#[test]
fn input_is_typed_by_what_is_declared() {
    let payment = |condition: &str| {
        let scope = "principal, action == Svc::Action::\"payment.execute\", resource";
        found(&format!("forbid({scope}) when {{ {condition} }};"))
    };
    assert_eq!(payment("context.input.iban like \"RU*\""), []);
    let wrong = payment("context.input.iban > 3");
    assert!(errors(&wrong).iter().any(|one| one.problem.contains("saw String")), "{wrong:#?}");
    let unasked = payment("context.input.urgent");
    assert_eq!(errors(&unasked).len(), 1, "{unasked:#?}");
    // A number does not have a Cedar type. Nor does a text, if no action declares it.
    assert_eq!(payment("context.input has rate && context.input.rate > 3"), []);
    let elsewhere = "forbid(principal, action == Svc::Action::\"report.read\", resource) \
                     when { context.input has iban && context.input.iban > 3 };";
    assert_eq!(found(elsewhere), []);
}

/// Cedar suggests the nearest name, however different it is.
#[test]
fn a_name_unlike_all_others_is_not_guessed_at() {
    for condition in ["principal.colour == \"blue\"", "principal in Svc::Spaceship::\"a\""] {
        let found = when(condition);
        assert!(!errors(&found).is_empty(), "{condition}: {found:#?}");
        let guess =
            |one: &&Finding| one.suggestion.as_ref().is_some_and(|s| s.contains("did you mean"));
        assert!(!found.iter().any(|one| guess(&one)), "{condition}: {found:#?}");
    }
}

#[test]
fn a_misspelt_member_is_said_where_a_test_for_it_would_hide_it() {
    for (condition, column, problem, suggestion) in [
        (
            "context has ammount && context.ammount.greaterThan(decimal(\"1.0\"))",
            44,
            "`context` has no member `ammount`",
            Some("did you mean `amount`?"),
        ),
        (
            "context has spaceship || context has amount",
            44,
            "`context` has no member `spaceship`",
            None,
        ),
        (
            "context has iban && context.input.iban like \"RU*\"",
            44,
            "`context` has no member `iban`",
            Some("did you mean `context.input has iban`?"),
        ),
        (
            "context has inptu.iban",
            44,
            "`context` has no member `inptu`",
            Some("did you mean `input`?"),
        ),
        (
            "principal has clas && principal.clas == \"agent\"",
            44,
            "`principal` has no member `clas`",
            Some("did you mean `class`?"),
        ),
        (
            "context.input has ibn && context.input.ibn like \"RU*\"",
            44,
            "`context.input.ibn` is not declared",
            Some("did you mean `iban`?"),
        ),
        (
            "context has input.ibn && context.input.ibn like \"RU*\"",
            44,
            "`context.input.ibn` is not declared",
            Some("did you mean `iban`?"),
        ),
        (
            "context.input.ibn like \"RU*\"",
            44,
            "`context.input.ibn` is not declared",
            Some(
                "did you mean `iban`? If not, write the allowed case: `unless { context.input has ibn && … }`",
            ),
        ),
    ] {
        let found = when(condition);
        let one = found.iter().find(|one| one.problem.contains(problem));
        let one = one.unwrap_or_else(|| panic!("{condition}: {found:#?}"));
        let place = (one.severity, one.line, one.column);
        assert_eq!(place, (Severity::Warning, 1, column), "{one:#?}");
        assert_eq!(one.suggestion.as_deref(), suggestion, "{one:#?}");
    }
    // In a short name, one letter may be wrong. In a name of two letters, no letter may be.
    assert_eq!(when("context.input has lins && context.input.lins == 1").len(), 1);
    assert_eq!(when("context.input has lsin && context.input.lsin == 1"), []);
    assert_eq!(when("context.input has to && context.input.to == \"a\""), []);
}

#[test]
fn a_member_that_is_unknown_is_said_once_for_all_actions() {
    let unknown = when("context.ammount == 3");
    let [one] = unknown.as_slice() else { panic!("{unknown:#?}") };
    assert_eq!(one.problem, "attribute `ammount` in context not found");
    assert_eq!(one.suggestion.as_deref(), Some("did you mean `amount`?"));
    let input = when("context.iban == \"a\"");
    let [one] = input.as_slice() else { panic!("{input:#?}") };
    assert_eq!(one.suggestion.as_deref(), Some("did you mean `context.input.iban`?"));
}

#[test]
fn what_nothing_declares_is_a_warning_at_most() {
    let missing = when("context.input.missing > 3");
    let [one] = missing.as_slice() else { panic!("{missing:#?}") };
    assert_eq!((one.severity, one.column), (Severity::Warning, 44), "{one:#?}");
    assert!(one.problem.contains("`context.input.missing` is not declared"), "{one:#?}");
    let allowed = "write the allowed case: `unless { context.input has missing && … }`";
    assert_eq!(one.suggestion.as_deref(), Some(allowed));
    let deep = when("context.input.who.name == \"ada\"");
    let all_warn = deep.iter().all(|one| one.severity == Severity::Warning);
    assert!(all_warn && deep.len() == 2, "{deep:#?}");
    let both = when("context.input has x && (context.input.x > 3 || context.input.x == \"a\")");
    let [one] = both.as_slice() else { panic!("{both:#?}") };
    assert_eq!(one.severity, Severity::Warning, "{one:#?}");
    assert!(
        one.problem.contains("as a whole number") && one.problem.contains("as a text"),
        "{one:#?}"
    );
    let also = when(
        "context.input has x && (context.input.x > 3 || context.input.x == \"a\") && principal.clas == \"a\"",
    );
    assert_eq!(errors(&also).len(), 1, "{also:#?}");
}

#[test]
fn a_name_much_like_a_known_one_is_a_warning() {
    let text = "forbid(principal, action == Svc::Action::\"payment.exceute\", resource);";
    let found = found(text);
    let [one] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!((one.severity, one.column), (Severity::Warning, 29));
    assert_eq!(one.suggestion.as_deref(), Some("did you mean `payment.execute`?"));
}

#[test]
fn actions_alike_in_type_are_checked_once() {
    let schema = json!({"type": "object", "properties": {"iban": {"type": "string"}}});
    let actions = (0..2_000).map(|number| format!("bulk.a{number}").parse().unwrap()).collect();
    let tools = vec![ToolInput::of(actions, Some(&schema), InputAt::Context)];
    let many = Surroundings::new(ContextSchema::default(), tools);
    let one = schema::actions(&BTreeSet::new(), &many);
    assert_eq!(one.len(), 2, "{one:?}");
    let named = BTreeSet::from(["bulk".to_owned(), "bulk.a7".to_owned()]);
    assert_eq!(schema::actions(&named, &many).len(), 4);
    let statement = "forbid(principal, action, resource) when { !(context.input has iban) };\n";
    let begun = std::time::Instant::now();
    assert_eq!(validate(&statement.repeat(100), &many, &Known::default()), []);
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}

#[test]
fn an_id_that_two_statements_have_is_a_warning() {
    let doubled = |text: &str| {
        let mut found = all_found(text);
        found.retain(|one| one.problem.contains("earlier statement has the `@id`"));
        found
    };
    let named = |id: &str| format!("@id(\"{id}\")\npermit (principal, action, resource);\n");
    let found = doubled(&[named("a"), named("b"), named("a")].concat());
    let [one] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!((one.severity, one.line), (Severity::Warning, 5), "{one:#?}");
    assert!(one.problem.contains("`a`"), "{one:#?}");
    let bare = "permit (principal, action, resource);\n";
    assert_eq!(doubled(&[bare, bare].concat()), []);
}
