//! Tests the families, their schemas, and the selections of patterns.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Value, json};

use super::{
    event_type::{TEST, TYPES},
    *,
};
use crate::{filter::Filter, schema::MemberType};

const FAMILIES: [&str; 29] = [
    "svc.actor.stopped",
    "svc.authority.attenuated",
    "svc.authority.expired",
    "svc.authority.granted",
    "svc.authority.reinstated",
    "svc.authority.revoked",
    "svc.authority.suspended",
    "svc.capability.granted",
    "svc.capability.quarantined",
    "svc.capability.released",
    "svc.decision.allowed",
    "svc.decision.approved",
    "svc.decision.declined",
    "svc.decision.denied",
    "svc.decision.expired",
    "svc.decision.requires_approval",
    "svc.evidence_pack.generated",
    "svc.evidence_pack.replayed",
    "svc.evidence_pack.verification_failed",
    "svc.reality.drift_detected",
    "svc.reality.recoupled",
    "svc.recovery.completed",
    "svc.recovery.failed",
    "svc.recovery.started",
    "svc.tenant.changed",
    "svc.tool.drifted",
    "svc.tool.pinned",
    "svc.webhook_endpoint.dead",
    "svc.webhook_endpoint.failing",
];

fn selected(patterns: &[&str]) -> Result<Selection, String> {
    let patterns: Vec<_> = patterns.iter().map(|text| (*text).to_owned()).collect();
    Selection::parse(&patterns).map_err(|why| why.to_string())
}

fn names<'a>(types: impl Iterator<Item = &'a EventType>) -> Vec<&'a str> {
    let mut names: Vec<_> = types.map(EventType::name).collect();
    names.sort_unstable();
    names
}

#[test]
fn there_are_29_families_and_a_test() {
    assert_eq!(names(EventType::families()), FAMILIES);
    assert_eq!(EventType::test().unwrap().name(), "svc.test");
    assert_eq!(EventType::named("svc.test"), None);
    for event_type in TYPES.iter() {
        let schema = event_type.schema();
        assert_eq!(schema["$id"], format!("/schemas/{}.v1.json", event_type.name()));
        assert_eq!(schema["properties"]["event_type"]["const"], event_type.name());
        assert!(schema["description"].as_str().unwrap().ends_with('.'), "{}", event_type.name());
        assert_eq!(*event_type.members(), MemberType::from_schema(schema).unwrap());
    }
}

/// Every text member has a closed set of values, is a time, or has a form without room for free
/// text.
#[test]
fn no_member_has_room_for_free_text() {
    let mut texts = 0;
    for event_type in TYPES.iter() {
        each_text(event_type.name(), event_type.schema(), &mut |path, schema| {
            texts += 1;
            let closed = ["enum", "const"].iter().any(|keyword| schema.get(keyword).is_some());
            let pattern = schema.get("pattern").and_then(Value::as_str);
            let narrow =
                pattern.is_some_and(|pattern| !Regex::new(pattern).unwrap().is_match("svc:a b"));
            assert!(closed || narrow || schema["format"] == "date-time", "{path}: {schema}");
        });
    }
    assert!(texts > 300, "{texts}");
}

fn each_text(path: &str, schema: &Value, check: &mut impl FnMut(&str, &Value)) {
    match schema["type"].as_str() {
        Some("string") => check(path, schema),
        Some("array") => each_text(path, &schema["items"], check),
        _ => {
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                each_text(&format!("{path}.{name}"), member, check);
            }
        }
    }
}

/// A member of several types has the same type in all. A filter can then compare it with one
/// literal.
#[test]
fn a_member_has_one_kind_in_all_types() {
    let mut kinds = BTreeMap::new();
    for event_type in TYPES.iter() {
        for (name, member) in
            event_type.schema()["properties"]["data"]["properties"].as_object().unwrap()
        {
            let kind = member["type"].clone();
            assert_eq!(*kinds.entry(name.clone()).or_insert_with(|| kind.clone()), kind, "{name}");
        }
    }
}

#[test]
fn each_example_fits_its_schema() {
    for event_type in TYPES.iter().filter(|event_type| event_type.name() != TEST) {
        let data = &event_type.schema()["properties"]["data"];
        let example =
            data["examples"][0].as_object().unwrap_or_else(|| panic!("{}", event_type.name()));
        let path = |member: &str| format!("{}: {member}", event_type.name());
        for required in data["required"].as_array().unwrap() {
            assert!(
                example.contains_key(required.as_str().unwrap()),
                "{}",
                path(required.as_str().unwrap())
            );
        }
        for (name, value) in example {
            let schema = data["properties"].get(name).unwrap_or_else(|| panic!("{}", path(name)));
            assert!(fits(value, schema), "{}: {value}", path(name));
        }
    }
}

fn fits(value: &Value, schema: &Value) -> bool {
    let words = schema["enum"].as_array();
    let pattern = schema["pattern"].as_str().map(|pattern| Regex::new(pattern).unwrap());
    match (schema["type"].as_str(), value) {
        (Some("boolean"), Value::Bool(_)) => true,
        (Some("integer"), Value::Number(number)) => number.is_i64(),
        (Some("string"), Value::String(text)) => {
            words.is_none_or(|words| words.contains(value))
                && pattern.is_none_or(|pattern| pattern.is_match(text))
        }
        _ => false,
    }
}

#[test]
fn patterns_select_families() {
    let of = |patterns: &[&str]| names(selected(patterns).unwrap().families()).len();
    assert_eq!(of(&["*"]), 29);
    assert_eq!(of(&["svc.*"]), 29);
    assert_eq!(of(&["svc.decision.*"]), 6);
    assert_eq!(of(&["svc.decision.*", "svc.decision.denied", "svc.actor.*"]), 7);
    let default = names(Selection::default().families());
    assert_eq!(default.len(), 27);
    assert!(
        !default.contains(&"svc.decision.allowed") && !default.contains(&"svc.decision.denied")
    );
}

#[test]
fn patterns_that_match_nothing_are_refused() {
    let refused = [
        (vec![], "at least one; leave it out"),
        (vec!["svc.*"; 51], "51 patterns; 50 at most"),
        (vec!["svc.decision.held"], "`svc.decision.held` matches no event type"),
        (vec!["svc.decision.denyed"], "did you mean `svc.decision.denied`?"),
        (vec!["svc.test"], "matches no event type"),
        (vec!["svc.decision"], "matches no event type"),
        (vec!["decision.*"], "matches no event type"),
        (vec!["svc.*.denied"], "`svc.*.denied` may hold `*` only alone or as its last segment"),
        (vec!["SVC.*"], "must be dotted segments"),
        (vec!["svc.\n"], "`svc.\\n` must be dotted segments"),
        (vec![""], "is empty"),
    ];
    for (patterns, expected) in refused {
        let why = selected(&patterns).unwrap_err();
        assert!(why.contains(expected), "{patterns:?}: {why}");
    }
    assert!(selected(&["svc.*"; 50]).is_ok());
}

#[test]
fn what_is_as_many_as_decisions_exists_only_on_demand() {
    let generated = EventType::named("svc.evidence_pack.generated").unwrap();
    let denied = EventType::named("svc.decision.denied").unwrap();
    let held = EventType::named("svc.decision.requires_approval").unwrap();
    let (automatic, asked) = (json!({"automatic": true}), json!({"automatic": false}));
    let default = Selection::default();
    assert!(default.takes(held, &json!({})) && default.takes(generated, &asked));
    assert!(!default.takes(denied, &json!({})) && !default.takes(generated, &automatic));
    assert_eq!(names(default.on_demand()), Vec::<&str>::new());
    for patterns in [["*"], ["svc.*"]] {
        let all = selected(&patterns).unwrap();
        assert!(all.takes(denied, &json!({})) && all.takes(generated, &automatic));
        let on_demand =
            ["svc.decision.allowed", "svc.decision.denied", "svc.evidence_pack.generated"];
        assert_eq!(names(all.on_demand()), on_demand);
    }
    assert_eq!(Selection::of_record(&[]), Ok(Selection::default()));
    assert_eq!(Selection::of_record(&["*".to_owned()]), Ok(selected(&["*"]).unwrap()));
    let decisions = selected(&["svc.decision.*"]).unwrap();
    assert_eq!(names(decisions.on_demand()), ["svc.decision.allowed", "svc.decision.denied"]);
    assert!(decisions.takes(denied, &json!({})) && !decisions.takes(generated, &asked));
}

#[test]
fn filters_are_checked_against_the_types_that_are_selected() {
    let filter = |patterns: &[&str], text: &str| {
        let selection = selected(patterns).unwrap();
        let types: Vec<_> = selection.families().map(EventType::members).collect();
        Filter::parse(text, &types).map(drop).map_err(|why| why.problem)
    };
    let text = "data.severity in [\"high\", \"critical\"] && tenant_id == \"svc:tenant:acme\"";
    assert_eq!(filter(&["*"], text), Ok(()));
    assert_eq!(filter(&["svc.reality.*"], text), Ok(()));
    let absent = filter(&["svc.decision.*"], text).unwrap_err();
    assert!(
        absent.contains("no event of the chosen types has a member `data.severity`"),
        "{absent}"
    );
    let word = filter(&["*"], "event_type == \"svc.decision.denyed\"").unwrap_err();
    assert!(word.contains("did you mean \"svc.decision.denied\"?"), "{word}");
    let member = filter(&["*"], "data.drift_typ == \"a\"").unwrap_err();
    assert!(member.contains("did you mean `data.drift_type`?"), "{member}");
}

#[test]
fn required_members_are_those_that_are_not_optional() {
    let schema = EventType::named("svc.authority.revoked").unwrap().schema();
    let required = json!(["kind", "authority_id", "holder_id", "below"]);
    assert_eq!(schema["properties"]["data"]["required"], required);
    assert!(!schema["required"].as_array().unwrap().contains(&"sequence".into()));
    assert_eq!(schema["properties"]["sequence"]["maximum"], json!(9_007_199_254_740_991_i64));
}
