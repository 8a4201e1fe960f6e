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
    draft.justification = Some("the supplier waits".to_owned());
    draft.client_nonce = Some("0".repeat(32));
    draft.include_record = true;
    assert_eq!(Request::new(draft.clone()).unwrap().question(), plain);
    let others: [fn(&mut Draft); 4] = [
        |draft| draft.purpose = None,
        |draft| draft.on_behalf_of = Some(HUMAN.into()),
        |draft| draft.supported_obligations = Some(vec!["mask.pii".to_owned()]),
        |draft| draft.supported_obligations = Some(Vec::new()),
    ];
    for change in others {
        let mut draft = draft.clone();
        change(&mut draft);
        assert_ne!(Request::new(draft).unwrap().question(), plain);
    }
}

/// A request without the later fields has the same text, and therefore the same digest, as before.
#[test]
fn absent_fields_are_not_in_the_text() {
    let text = serde_json::to_string(&Request::new(World::sound().draft).unwrap()).unwrap();
    let names = ["on_behalf_of", "supported_obligations", "justification"];
    for name in names.into_iter().chain(["client_nonce", "include_record"]) {
        assert!(!text.contains(name), "{name} in {text}");
    }
}

#[test]
fn the_order_of_supported_obligations_does_not_matter() {
    let of = |names: &[&str]| {
        let mut draft = World::sound().draft;
        draft.supported_obligations = Some(names.iter().map(|name| (*name).to_owned()).collect());
        Request::new(draft).unwrap().question()
    };
    assert_eq!(of(&["mask.pii", "log.full", "mask.pii"]), of(&["log.full", "mask.pii"]));
    assert_ne!(of(&["mask.pii"]), of(&["log.full", "mask.pii"]));
}

#[test]
fn checks_the_later_fields() {
    let supported = |names: Vec<String>| faults(|draft| draft.supported_obligations = Some(names));
    assert!(supported(Vec::new()).is_empty());
    assert!(supported(vec!["x".repeat(128)]).is_empty());
    let many = |count: usize| (0..count).map(|number| format!("duty-{number}")).collect();
    assert!(supported(many(100)).is_empty());
    for bad in [many(101), vec![String::new()], vec!["x".repeat(129)], vec!["a\u{0}".to_owned()]] {
        assert_eq!(supported(bad), ["supported_obligations"]);
    }
    assert!(faults(|draft| draft.on_behalf_of = Some(HUMAN.into())).is_empty());
    for bad in ["", "h", "svc:ent:t:team:x"] {
        assert_eq!(
            faults(|draft| draft.on_behalf_of = Some(bad.into())),
            ["on_behalf_of"],
            "{bad}"
        );
    }
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
