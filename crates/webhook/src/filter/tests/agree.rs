//! Random filters on random events: this implementation and the `cel` crate must agree.

use cel::{Context, Program, Value as CelValue};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::types;
use crate::filter::{Filter, Match};

/// A part of a filter, in parentheses if it has operators.
fn expression() -> impl Strategy<Value = String> {
    let text = || {
        prop::sample::select(vec!["\"\"", "\"a\"", "'b'", "\"a\\u00e9\\n\"", "\"ab\"", "'\\\"'"])
    };
    let path =
        || prop::sample::select(vec!["event_type", "reason_code", "data.action", "data.tool.id"]);
    let whole = || prop::sample::select(vec!["-1", "0", "1", "2", "9007199254740991"]);
    let number = || prop::sample::select(vec!["sequence", "data.approvals", "data.children"]);
    let order = || prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let equal = || prop::sample::select(vec!["==", "!="]);
    let call = || prop::sample::select(vec!["startsWith", "endsWith"]);
    let words =
        prop::collection::vec(prop::sample::select(vec!["'allow'", "'deny'", "\"held\""]), 1..4);
    let held =
        prop::sample::select(vec!["data.action", "data.tool", "data.tool.id", "data.children"]);
    let leaf = prop_oneof![
        (path(), order(), text()).prop_map(|(path, by, text)| format!("{path} {by} {text}")),
        (number(), order(), whole()).prop_map(|(path, by, number)| format!("{path}{by}{number}")),
        (equal(), any::<bool>()).prop_map(|(by, value)| format!("data.repeated {by} {value}")),
        (number(), prop::collection::vec(whole(), 1..4))
            .prop_map(|(path, list)| format!("{path} in [{}]", list.join(", "))),
        words.prop_map(|words| format!("data.decision in [{}]", words.join(","))),
        (path(), call(), text()).prop_map(|(path, call, text)| format!("{path}.{call}({text})")),
        held.prop_map(|path| format!("has({path})")),
    ];
    leaf.prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| format!("!({inner})")),
            prop::collection::vec(inner.clone(), 2..4)
                .prop_map(|all| format!("({})", all.join(" && "))),
            prop::collection::vec(inner.clone(), 2..4)
                .prop_map(|all| format!("({})", all.join(" || "))),
            // Without parentheses, to test precedence.
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(a, b, c)| format!("{a} || {b} && {c}")),
        ]
    })
}

/// An event from which any members may be absent.
fn event() -> impl Strategy<Value = Value> {
    let text =
        || prop::option::of(prop::sample::select(vec!["", "a", "b", "aé\n", "ab", "\"", "abc"]));
    let number = || prop::option::of(-1_i64..3);
    let word = prop::option::of(prop::sample::select(vec!["allow", "deny", "held"]));
    let tool = prop::option::of(text());
    let data = (text(), number(), number(), prop::option::of(any::<bool>()), word, tool);
    let event = (text(), text(), number(), prop::option::of(data));
    event.prop_map(|(event_type, reason, sequence, data)| {
        let data = data.map(|(action, approvals, children, repeated, decision, tool)| {
            given(json!({"action": action, "approvals": approvals, "children": children,
                "repeated": repeated, "decision": decision, "tool": tool.map(|id| given(json!({"id": id})))}))
        });
        given(json!({"event_type": event_type, "reason_code": reason, "sequence": sequence, "data": data}))
    })
}

/// Removes the members that are null.
fn given(mut object: Value) -> Value {
    object.as_object_mut().unwrap().retain(|_, member| !member.is_null());
    object
}

fn by_cel(text: &str, event: &Value) -> Match {
    let program = Program::compile(text).unwrap_or_else(|why| panic!("{text}: {why}"));
    let mut context = Context::default();
    for (name, member) in event.as_object().unwrap() {
        context.add_variable(name.clone(), member).unwrap();
    }
    match program.execute(&context) {
        Ok(CelValue::Bool(true)) => Match::Yes,
        Ok(CelValue::Bool(false)) => Match::No,
        Ok(other) => panic!("{text}: {other:?}"),
        Err(_) => Match::Error,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn cel_says_the_same(text in expression(), event in event()) {
        let types = types();
        // Some filters are too large.
        if let Ok(filter) = Filter::parse(&text, &types.each_ref()) {
            prop_assert_eq!(filter.evaluate(&event), by_cel(&text, &event), "{} on {}", text, event);
        }
    }
}
