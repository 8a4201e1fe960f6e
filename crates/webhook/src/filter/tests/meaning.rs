//! The results of filters on events.

use serde_json::{Value, json};

use super::types;
use crate::filter::{Filter, Match};

fn says(text: &str, event: &Value) -> Match {
    let types = types();
    Filter::parse(text, &types.each_ref())
        .unwrap_or_else(|why| panic!("{text}: {why}"))
        .evaluate(event)
}

#[test]
fn a_filter_of_every_form() {
    let event = json!({"event_type": "svc.decision.denied", "sequence": 7,
        "data": {"decision": "deny", "action": "päyment.execute\n\"", "approvals": -2,
            "repeated": true, "tool": {"id": "svc:tool:a"}}});
    let (yes, no, error) = (Match::Yes, Match::No, Match::Error);
    let table = [
        ("data.decision == \"deny\"", yes),
        ("data.decision != 'deny'", no),
        ("sequence == 7", yes),
        ("sequence != 7", no),
        ("sequence < 8 && sequence <= 7 && sequence > 6 && sequence >= 7", yes),
        ("sequence < 7 || sequence > 7", no),
        ("data.approvals == -2", yes),
        ("data.approvals < -1", yes),
        ("data.repeated == true", yes),
        ("data.repeated != true", no),
        ("event_type < \"svc.e\"", yes),
        ("data.action > \"pz\"", yes),
        ("sequence in [1, 7]", yes),
        ("data.decision in ['allow']", no),
        ("has(data.tool)", yes),
        ("has(data.tool.id)", yes),
        ("has(data.children)", no),
        ("!has(data.children)", yes),
        ("event_type.startsWith(\"svc.decision.\")", yes),
        ("event_type.endsWith(\".allowed\")", no),
        ("data.action == \"p\\u00e4yment.execute\\n\\\"\"", yes),
        ("data.action.endsWith('\\'')", no),
        ("data.tool.id . startsWith ( \"svc:tool:\" )", yes),
        ("sequence == 1 || sequence == 7 && event_type == \"x\"", no),
        ("(sequence == 1 || sequence == 7) && !(event_type == \"x\")", yes),
        ("sequence == 007", yes),
        // Absent members.
        ("reason_code == \"a\"", error),
        ("reason_code != \"a\"", error),
        ("!(reason_code == \"a\")", error),
        ("reason_code in [\"a\"]", error),
        ("reason_code.startsWith(\"\")", error),
    ];
    for (text, expected) in table {
        assert_eq!(says(text, &event), expected, "{text}");
    }
}

#[test]
fn errors_are_absorbed_in_either_order() {
    let event = json!({"sequence": 1, "data": {}});
    let operands = [
        ("sequence == 1", Some(true)),
        ("sequence == 2", Some(false)),
        ("reason_code == \"a\"", None),
    ];
    for (left, one) in operands {
        for (right, other) in operands {
            let or = match (one, other) {
                (Some(true), _) | (_, Some(true)) => Match::Yes,
                (Some(false), Some(false)) => Match::No,
                _ => Match::Error,
            };
            let and = match (one, other) {
                (Some(false), _) | (_, Some(false)) => Match::No,
                (Some(true), Some(true)) => Match::Yes,
                _ => Match::Error,
            };
            assert_eq!(says(&format!("{left} || {right}"), &event), or, "{left} || {right}");
            assert_eq!(says(&format!("{left} && {right}"), &event), and, "{left} && {right}");
        }
    }
}

#[test]
fn an_event_of_another_shape_is_an_error_or_no_match() {
    for event in [json!(null), json!([]), json!("data"), json!({"data": 1, "sequence": "1"})] {
        assert_eq!(says("data.action == \"a\"", &event), Match::Error, "{event}");
        assert_eq!(says("has(data.action)", &event), Match::Error, "{event}");
        assert_ne!(says("sequence == 1", &event), Match::Yes, "{event}");
        assert_eq!(says("sequence > 0", &event), Match::Error, "{event}");
    }
}

#[test]
fn numbers_compare_by_value() {
    let greater = |number: Value| says("sequence > 9007199254740991", &json!({"sequence": number}));
    assert_eq!(greater(json!(u64::MAX)), Match::Yes);
    assert_eq!(greater(json!(1e300)), Match::Yes);
    assert_eq!(greater(json!(i64::MIN)), Match::No);
    assert_eq!(greater(json!(9_007_199_254_740_991_i64)), Match::No);
    assert_eq!(says("sequence == 2", &json!({"sequence": 2.0})), Match::Yes);
}
