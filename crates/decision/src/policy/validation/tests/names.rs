//! Tests names that don't exist and words outside their closed set.

use super::*;

#[test]
fn words_of_closed_sets_are_errors_wherever_they_are_written() {
    for (condition, problem, suggestion) in [
        ("principal.class == \"robot\"", "`robot` is not a valid class of a principal", "human"),
        ("\"agnet\" == principal.class", "`agnet` is not a valid class", "did you mean `agent`?"),
        ("principal.class != \"humans\"", "`humans`", "did you mean `human`?"),
        ("[\"agent\", \"bot\"].contains(principal.class)", "`bot`", "external_app"),
        ("[principal.class].containsAny([\"Agent\"])", "`Agent`", "did you mean `agent`?"),
        (
            "context has risk_tier && context.risk_tier == \"hihg\"",
            "`hihg` is not a valid risk tier",
            "`high`",
        ),
        (
            "context has effect_class && context.effect_class == \"finance\"",
            "not a valid effect class",
            "financial",
        ),
        (
            "context has reversibility && context.reversibility == \"undoable\"",
            "not a valid reversibility",
            "reversible",
        ),
        (
            "context has oversight && context.oversight == \"two_persons\"",
            "not a valid oversight",
            "`two_person`",
        ),
        ("context has jurisdiction && context.jurisdiction == \"UK\"", "`UK`", "write `GB`"),
        (
            "context has jurisdiction && context.jurisdiction == \"Germany\"",
            "`Germany`",
            "write `DE`",
        ),
        (
            "context has jurisdiction && [\"DE\", \"EL\"].contains(context.jurisdiction)",
            "`EL`",
            "write `GR`",
        ),
        ("context has jurisdiction && context.jurisdiction == \"EU\"", "`EU`", ""),
        ("context has jurisdiction && context[\"jurisdiction\"] == \"XX\"", "`XX`", ""),
        (
            "context has subdivision && context.subdivision == \"UK-SCT\"",
            "`UK-SCT`",
            "write `GB-SCT`",
        ),
        (
            "context has subdivision && context.subdivision == \"DE\"",
            "not a subdivision",
            "jurisdiction",
        ),
        ("principal.class like \"robo*\"", "no class of a principal matches", "human"),
        (
            "(if context has jurisdiction then context.jurisdiction else \"none\") == \"UK\"",
            "`UK`",
            "`GB`",
        ),
    ] {
        let found = when(condition);
        let one = found.iter().find(|one| one.problem.contains(problem));
        let one = one.unwrap_or_else(|| panic!("{condition}: {found:#?}"));
        assert_eq!((one.severity, one.by_schema), (Severity::Error, false), "{one:#?}");
        assert!(one.suggestion.clone().unwrap_or_default().contains(suggestion), "{one:#?}");
    }
}

#[test]
fn words_of_closed_sets_and_other_texts_are_no_errors() {
    for condition in [
        "principal.class == \"external_app\" || principal.name == \"robot\"",
        "context.input has class && context.input.class == \"robot\"",
        "!(context has jurisdiction && [\"GB\", \"XK\", \"DE\"].contains(context.jurisdiction))",
        "(if context has risk_tier then context.risk_tier else \"none\") == \"none\"",
        "principal.class like \"ag*\"",
    ] {
        assert_eq!(errors(&when(condition)), Vec::<&Finding>::new(), "{condition}");
    }
}

#[test]
fn a_currency_of_no_standard_is_a_warning() {
    for (code, near) in
        [("EURO", Some("EUR")), ("usd", Some("USD")), ("USDC", Some("USD")), ("BITCOIN", None)]
    {
        let found = when(&format!("!(context has currency && context.currency == \"{code}\")"));
        let [one] = found.as_slice() else { panic!("{found:#?}") };
        assert_eq!(one.severity, Severity::Warning);
        let near = near.map(|near| format!("did you mean `{near}`?"));
        assert_eq!(one.suggestion, near, "{code}");
    }
    assert_eq!(
        when("!(context has currency && [\"EUR\", \"JPY\"].contains(context.currency))"),
        []
    );
}

#[test]
fn names_are_found_in_scopes_and_conditions() {
    let text = "forbid(principal in Svc::Team::\"t1\", action in [Svc::Action::\"a\", Svc::Action::\"b.c\"], resource)\n\
        when { action == Svc::Action::\"b.c.d\" && resource == Svc::Resource::\"r\" }\n\
        when { [Svc::Principal::\"p\"].contains(principal) || context.purpose == \"x\" }\n\
        unless { [\"y\", \"z\"].contains(context.purpose) && context.delegation == \"d\" && resource.kind == \"k\" };";
    let found: Vec<_> = named(text).into_iter().map(|one| (one.kind, one.name)).collect();
    let expected = [
        (NameKind::Action, "b.c.d"),
        (NameKind::Actions, "a"),
        (NameKind::Actions, "b.c"),
        (NameKind::Team, "t1"),
        (NameKind::Principal, "p"),
        (NameKind::Resource, "r"),
        (NameKind::ResourceKind, "k"),
        (NameKind::Purpose, "x"),
        (NameKind::Purpose, "y"),
        (NameKind::Purpose, "z"),
        (NameKind::Delegation, "d"),
    ];
    assert_eq!(found, expected.map(|(kind, name)| (kind, name.to_owned())));
    assert_eq!(named("forbid(").len(), 0);
}

#[test]
fn a_missing_name_is_a_warning_with_the_nearest() {
    let missing = [
        (Name::new(NameKind::Action, "wire.excute"), Some("wire.execute".to_owned())),
        (Name::new(NameKind::Team, "nobody"), None),
    ];
    let known = Known { missing: missing.into(), ..Known::default() };
    let text = "forbid(principal in Svc::Team::\"nobody\", action == Svc::Action::\"wire.excute\", resource);";
    let found = validate(text, &surroundings(), &known);
    let told: Vec<_> = found.iter().map(|one| (one.severity, one.suggestion.as_deref())).collect();
    let near = Some("did you mean `wire.execute`?");
    assert_eq!(told, [(Severity::Warning, None), (Severity::Warning, near)], "{found:#?}");
    assert!(
        found[0].problem.contains("no team `nobody`")
            && found[1].problem.contains("grant covers the action")
    );
}

#[test]
fn the_id_of_a_renewal_is_an_error_with_the_first_of_its_line() {
    let (first, renewal) = ("svc:del:acme:a", "svc:del:acme:b");
    let known =
        Known { renewed: [(renewal.to_owned(), first.to_owned())].into(), ..Known::default() };
    let found = |effect: &str, condition: &str| {
        let text = format!(
            "{effect}(principal, action, resource) \
             when {{ context has delegation && {condition} }};"
        );
        let found = validate(&text, &surroundings(), &known);
        let is_looked_up = named(&text).contains(&Name::new(NameKind::Delegation, renewal));
        (errors(&found).into_iter().cloned().collect::<Vec<_>>(), is_looked_up)
    };
    for condition in [
        "context.delegation == \"svc:del:acme:b\"",
        "\"svc:del:acme:b\" != context[\"delegation\"]",
        "[\"svc:del:acme:a\", \"svc:del:acme:b\"].contains(context.delegation)",
        "[context.delegation].containsAny([\"svc:del:acme:b\"])",
        "(if context has delegation then context.delegation else \"none\") == \"svc:del:acme:b\"",
        "{\"a\": \"svc:del:acme:b\"}.a == context.delegation",
        "{\"a\": \"svc:del:acme:b\"} == {\"a\": context.delegation}",
        "context.delegation like \"svc:del:acme:b\"",
        "context.delegation like \"*svc:del:acme:b*\"",
    ] {
        for effect in ["forbid", "permit"] {
            let (found, is_looked_up) = found(effect, condition);
            let [one] = found.as_slice() else { panic!("{condition}: {found:#?}") };
            assert!(is_looked_up && !one.by_schema, "{condition}: {one:#?}");
            assert!(one.problem.contains(renewal), "{one:#?}");
            assert!(one.suggestion.clone().unwrap_or_default().contains(first), "{one:#?}");
        }
    }
    for condition in [
        "context.delegation == \"svc:del:acme:a\"",
        "context.delegation like \"svc:del:acme:*\"",
        "context.input has origin && context.input.origin == \"svc:del:acme:b\"",
        "context.input has delegation && context.input.delegation == \"svc:del:acme:b\"",
    ] {
        assert_eq!(found("forbid", condition), (Vec::new(), false), "{condition}");
    }
}

/// Cedar also reports the read without `has`. A lenient tenant accepts that, but not the renewal.
#[test]
fn a_context_inside_an_if_is_the_context() {
    let (first, renewal) = ("svc:del:acme:a", "svc:del:acme:b");
    let known =
        Known { renewed: [(renewal.to_owned(), first.to_owned())].into(), ..Known::default() };
    let text = format!(
        "forbid(principal, action, resource) when {{ \
         (if context has purpose then context else context).delegation == \"{renewal}\" }};"
    );
    assert!(named(&text).contains(&Name::new(NameKind::Delegation, renewal)));
    let found = validate(&text, &surroundings(), &known);
    let is_refused = |one: &Finding| !one.by_schema && one.problem.contains("renews another one");
    assert!(errors(&found).into_iter().any(is_refused), "{found:#?}");
}

#[test]
fn many_other_names_do_not_hide_a_delegation() {
    let others: Vec<_> = (0..300).map(|number| format!("\"p{number}\"")).collect();
    let text = format!(
        "forbid(principal, action, resource) \
         when {{ context has purpose && [{}].contains(context.purpose) }};\n\
         forbid(principal, action, resource) \
         when {{ context has delegation && context.delegation == \"d\" }};",
        others.join(", ")
    );
    let names = named(&text);
    assert!(names.contains(&Name::new(NameKind::Delegation, "d")), "{}", names.len());
    assert!(names.len() < 300);
}

#[test]
fn a_pattern_covers_an_action_or_a_part_of_a_group() {
    let covered = |kind, name: &str, pattern: &str| {
        Name::new(kind, name).is_covered_by(&pattern.parse().unwrap())
    };
    let (one, group) = (NameKind::Action, NameKind::Actions);
    assert!(covered(one, "a.b", "a.*") && covered(one, "a.b", "*") && !covered(one, "a", "a.*"));
    assert!(
        covered(group, "a", "a.b") && covered(group, "a", "a.*") && covered(group, "a", "a.b.*")
    );
    assert!(
        covered(group, "a.b", "a.*") && !covered(group, "a", "b.*") && !covered(group, "a", "ab")
    );
}

#[test]
fn warnings_do_not_hide_an_error() {
    let forbid = "forbid(principal, action, resource) when { context has amount };\n";
    let text =
        forbid.repeat(60) + "forbid(principal, action, resource) when { principal.clas == \"a\" };";
    let found = all_found(&text);
    assert_eq!(errors(&found).len(), 1, "{found:#?}");
}
