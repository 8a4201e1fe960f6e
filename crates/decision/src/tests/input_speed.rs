//! Measures the cost of checking the input of a decision. Run in a release build:
//! `cargo test --release -p authority-decision --lib input_speed -- --ignored --nocapture`

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{input::with_schema, *};
use crate::request::input_schema::InputAt;

/// The maximum cost of a schema of ten fields.
const MOST: Duration = Duration::from_micros(3);

fn schema() -> Value {
    json!({"type": "object", "required": ["amount", "currency", "iban", "name"], "additionalProperties": false, "properties": {
        "amount": {"type": "number", "minimum": 0, "maximum": 100_000},
        "currency": {"type": "string", "enum": ["CHF", "EUR", "GBP", "USD"]},
        "iban": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$"},
        "name": {"type": "string", "minLength": 1, "maxLength": 70},
        "note": {"type": "string", "maxLength": 140},
        "urgent": {"type": "boolean"},
        "count": {"type": "integer", "minimum": 1},
        "region": {"$ref": "#/$defs/region"},
        "lines": {"type": "array", "maxItems": 10, "items": {"type": "object", "required": ["n"],
            "properties": {"n": {"type": "integer"}, "text": {"type": "string"}}}},
        "kind": {"anyOf": [{"const": "sepa"}, {"const": "wire"}]}},
        "$defs": {"region": {"type": "string", "enum": ["EU", "US"]}}})
}

fn context() -> Value {
    json!({"amount": 1200.5, "currency": "EUR", "iban": "DE44500105175407324931", "name": "Example Ltd",
        "note": "Invoice 2026-1187", "urgent": false, "count": 3, "region": "EU", "jurisdiction": "DE",
        "lines": [{"n": 1, "text": "a"}, {"n": 2, "text": "b"}], "kind": "wire"})
}

/// Returns the fastest of many short series. Other load can only slow a series down.
fn least(world: &World) -> Duration {
    let (request, facts) = (Request::new(world.draft.clone()).unwrap(), world.facts());
    assert_eq!(decide(&request, &facts, now()).reason_code, Reason::PermissionGranted);
    let timed = || {
        let start = Instant::now();
        (0..50).for_each(|_| drop(black_box(decide(&request, &facts, now()))));
        start.elapsed() / 50
    };
    (0..2_000).map(|_| timed()).min().unwrap()
}

#[test]
#[ignore = "measures; in a build for release"]
fn a_schema_of_ten_members_costs_little() {
    let world = |tools: &[(Tool, Value)], named: Option<&str>| {
        let mut world = World::with_tools(tools, named);
        world.draft.context = context().as_object().cloned().unwrap();
        world
    };
    let free = [(tool("tool-1"), json!({}))];
    let strict = [with_schema("tool-1", &schema(), InputAt::Context)];
    for named in [Some("tool-1"), None] {
        let (without, with) = (least(&world(&free, named)), least(&world(&strict, named)));
        eprintln!("{named:?}: {without:?} without a schema, {with:?} with one");
        assert!(with <= without + MOST, "{with:?}, {without:?}");
    }
}
