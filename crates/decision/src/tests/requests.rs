//! Tests the requests that the core accepts.

use super::*;
use crate::request::draft::{Invalid, validate};

fn faults(change: impl FnOnce(&mut Draft)) -> Vec<String> {
    let mut draft = World::sound().draft;
    change(&mut draft);
    validate(&draft).into_iter().map(|(member, _)| member).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "callers pass the value that `json!` returns")]
fn context(json: serde_json::Value) -> Vec<String> {
    faults(|draft| draft.context = json.as_object().cloned().unwrap())
}

#[test]
fn names_every_member_at_fault() {
    assert!(faults(|_| {}).is_empty());
    let many = faults(|draft| {
        draft.subject = "a".into();
        draft.action = "Pay".to_owned();
        draft.purpose = Some(String::new());
        draft.tool_id = Some("a\0".into());
        draft.context.insert("amount".to_owned(), json!("1"));
    });
    assert_eq!(many, ["tool_id", "purpose", "subject", "action", "context.amount"]);
    assert_eq!(faults(|draft| draft.action = "a".repeat(129)), ["action"]);
    for subject in ["svc:agent:t:", "svc:agent:t:a:b", "svc:ent:t:team:x", "svc:agent::a"] {
        assert_eq!(faults(|draft| draft.subject = subject.into()), ["subject"], "{subject}");
    }
}

#[test]
fn checks_the_context() {
    assert_eq!(context(json!({"amount": 0.00001})), ["context.amount"]);
    assert_eq!(context(json!({"amount": 1e20})), ["context.amount"]);
    assert_eq!(
        context(json!({"currency": 3, "jurisdiction": true})),
        ["context.currency", "context.jurisdiction"]
    );
    assert_eq!(
        context(json!({"currency": "eur", "jurisdiction": "Germany"})),
        ["context.currency", "context.jurisdiction"]
    );
    assert!(
        context(json!({"currency": "EUR", "jurisdiction": "DE-BY", "amount": null})).is_empty()
    );
    assert_eq!(context(json!({"x": [{"y": "\u{0}"}]})), ["context.x"]);
    assert_eq!(context(json!({"a\u{0}": 1})), ["context.a\u{fffd}"]);
    assert!(context(json!({"x": 9_007_199_254_740_991_i64})).is_empty());
    for huge in [json!(9_007_199_254_740_992_i64), json!([-1e20]), json!({"y": u64::MAX})] {
        assert_eq!(context(json!({"x": huge})), ["context.x"]);
    }
    let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    assert!(context(json!({"x": nested(31)})).is_empty());
    assert_eq!(context(json!({"x": nested(32)})), ["context.x"]);
}

#[test]
fn the_amount_has_one_form() {
    let form = |amount: serde_json::Value| {
        let mut draft = World::sound().draft;
        draft.context.insert("amount".to_owned(), amount);
        draft.context.insert("nothing".to_owned(), serde_json::Value::Null);
        serde_json::to_string(&Request::new(draft).unwrap().context).unwrap()
    };
    let of = |text: &str| form(serde_json::from_str(text).unwrap());
    assert!(of("2500").contains(r#""amount":2500,"#));
    assert_eq!(of("2500.0"), of("2500"));
    assert_eq!(of("2.5e3"), of("2500"));
    assert!(of("0.1000").contains(r#""amount":0.1,"#) && !of("1").contains("nothing"));
}

#[test]
fn the_question_leaves_out_what_does_not_change_it() {
    let mut draft = World::sound().draft;
    let plain = Request::new(draft.clone()).unwrap().question();
    draft.approval_id = Some("approval-1".into());
    draft.explain = true;
    draft.at_least_revision = Some(7);
    assert_eq!(Request::new(draft.clone()).unwrap().question(), plain);
    draft.purpose = None;
    assert_ne!(Request::new(draft).unwrap().question(), plain);
}

#[test]
fn an_invalid_draft_reads_as_an_error() {
    let invalid = Request::new(Draft::default()).unwrap_err();
    let Invalid { faults } = &invalid;
    assert_eq!(faults.len(), 3);
    assert!(invalid.to_string().contains("`subject` is empty"));
    assert!("{}".parse::<Request>().is_err());
    assert!(r#"{"tenant_id":"t","unknown":1}"#.parse::<Request>().is_err());
}
