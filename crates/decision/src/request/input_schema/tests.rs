//! Tests the supported keywords of JSON Schema 2020-12 against the standard.

use serde_json::{Value, json};

use super::{
    InputSchema, check,
    json::Json,
    violation::{At, Broken},
};

/// Returns the pointer and the rule that a value violates; `None` if it is valid.
fn broken(schema: &Value, value: &Value) -> Option<(String, String)> {
    let schema = InputSchema::new("digest".to_owned(), schema.to_string());
    let told = schema.judge(Json::from(value), &At::context(true)).err();
    let silent = schema.judge(Json::from(value), &At::context(false));
    assert_eq!(told.is_some(), silent.is_err(), "the details do not change the result");
    assert!(!matches!(silent, Err(Broken(Some(_)))));
    told.map(|Broken(violation)| violation.map(|one| (one.pointer, one.rule)).unwrap())
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a table of values")]
fn table(schema: Value, good: &[Value], bad: &[(Value, &str, &str)]) {
    assert_eq!(check(&schema).faults, [], "{schema}");
    for value in good {
        assert_eq!(broken(&schema, value), None, "{schema} {value}");
    }
    for (value, pointer, rule) in bad {
        let found = broken(&schema, value);
        let (at, why) = found.unwrap_or_else(|| panic!("{schema} takes {value}"));
        assert_eq!(at, *pointer, "{schema} {value}");
        assert!(why.starts_with(rule), "{schema} {value}: {why}");
    }
}

#[test]
fn types_are_those_of_the_standard() {
    let of = |word: &str| json!({"properties": {"a": {"type": word}}});
    let one = |value: Value| json!({"a": value});
    let bad = |value: Value| (json!({"a": value}), "/a", "`type`");
    table(
        of("integer"),
        &[one(json!(5)), one(json!(5.0)), one(json!(-0.0))],
        &[bad(json!(5.5)), bad(json!("5"))],
    );
    table(of("number"), &[one(json!(5)), one(json!(5.5))], &[bad(json!("5")), bad(json!(true))]);
    table(
        of("string"),
        &[one(json!("")), json!({})],
        &[bad(json!(7)), bad(json!(["EU"])), bad(json!({}))],
    );
    table(of("boolean"), &[one(json!(false))], &[bad(json!(0)), bad(json!("true"))]);
    table(of("array"), &[one(json!([]))], &[bad(json!({})), bad(json!("[]"))]);
    table(of("object"), &[one(json!({}))], &[bad(json!([])), bad(json!("{}"))]);
    let either = json!({"properties": {"a": {"type": ["integer", "null", "boolean"]}}});
    table(
        either,
        &[one(json!(1)), one(json!(true)), one(Value::Null)],
        &[bad(json!(1.5)), bad(json!("x"))],
    );
}

#[test]
fn enum_and_const_compare_what_values_are_worth() {
    let schema = json!({"properties": {"region": {"enum": ["US", "EU", 1, 2.50, {"a": 1}, [1, "x"]]}, "v": {"const": 1}}});
    let good = [
        json!({"region": "EU"}),
        json!({"region": 1.0, "v": 1.0}),
        json!({"region": 2.5}),
        json!({"region": {"a": 1.0, "b": null}}),
        json!({"region": [1, "x"]}),
        json!({"region": null}),
    ];
    let bad = |value: Value| (json!({"region": value}), "/region", "`enum`");
    let bad = [
        bad(json!("eu")),
        bad(json!("XX")),
        bad(json!(["EU"])),
        bad(json!(7)),
        bad(json!({"a": 1, "b": 2})),
        bad(json!({})),
        bad(json!(["x", 1])),
        (json!({"v": "1"}), "/v", "`const`"),
        (json!({"v": true}), "/v", "`const`"),
    ];
    table(schema, &good, &bad);
}

#[test]
fn numbers_are_compared_exactly() {
    let schema = json!({"properties": {"n": {"minimum": 0.1, "maximum": 0.3},
        "x": {"exclusiveMinimum": 1, "exclusiveMaximum": 9_007_199_254_740_991_i64}}});
    let n = |value: Value| (json!({"n": value}), "/n", "`m");
    table(
        schema,
        &[
            json!({"n": 0.1}),
            json!({"n": 0.3}),
            json!({"n": "any text"}),
            json!({"x": 1.000_000_1}),
            json!({"x": 9_007_199_254_740_990_i64}),
        ],
        &[
            n(json!(0.300_000_000_000_000_04)),
            n(json!(0.099_999_999_999_999_99)),
            n(json!(-5)),
            (json!({"x": 1}), "/x", "`exclusiveMinimum`"),
            (json!({"x": 9_007_199_254_740_991_i64}), "/x", "`exclusiveMaximum`"),
        ],
    );
}

#[test]
fn lengths_are_in_characters_and_items() {
    let schema = json!({"properties": {"t": {"minLength": 2, "maxLength": 3}, "l": {"minItems": 1, "maxItems": 2,
        "items": {"pattern": "^[a-z]$"}}}});
    table(
        schema,
        &[
            json!({"t": "éé"}),
            json!({"t": "𝄞𝄞𝄞"}),
            json!({"t": 12345}),
            json!({"l": ["a", "b"]}),
            json!({"l": "x"}),
        ],
        &[
            (json!({"t": "é"}), "/t", "`minLength` 2"),
            (json!({"t": ""}), "/t", "`minLength` 2"),
            (json!({"t": "𝄞𝄞𝄞𝄞"}), "/t", "`maxLength` 3"),
            (json!({"l": []}), "/l", "`minItems` 1"),
            (json!({"l": ["a", "b", "c"]}), "/l", "`maxItems` 2"),
            (json!({"l": ["a", "B"]}), "/l/1", "`pattern`"),
        ],
    );
}

#[test]
fn members_are_required_unless_they_are_null_and_others_are_refused() {
    let schema = json!({"type": "object", "required": ["a/b", "m~n"], "additionalProperties": false,
        "properties": {"a/b": {"type": "object", "additionalProperties": {"type": "integer"}}, "m~n": true, "no": false}});
    table(
        schema,
        &[
            json!({"a/b": {"x": 1}, "m~n": 1, "gone": null}),
            json!({"a/b": {}, "m~n": {}, "amount": 5, "currency": "EUR", "jurisdiction": "DE"}),
        ],
        &[
            (json!({"m~n": 1}), "/a~1b", "`required`"),
            (json!({"a/b": {}, "m~n": null}), "/m~0n", "`required`"),
            (json!({"a/b": {"x": "1"}, "m~n": 1}), "/a~1b/x", "`type` integer"),
            (json!({"a/b": {"amount": "1"}, "m~n": 1}), "/a~1b/amount", "`type` integer"),
            (json!({"a/b": {}, "m~n": 1, "Amount": 5}), "/Amount", "`additionalProperties` false"),
            (json!({"a/b": {}, "m~n": 1, "no": 5}), "/no", "that there is no such member"),
            (json!([]), "", "`type` object"),
        ],
    );
}

#[test]
fn an_amount_is_checked_where_it_is_named() {
    let schema = json!({"additionalProperties": {"type": "string"}, "properties": {"amount": {"maximum": 100}}});
    let over = (json!({"amount": 101}), "/amount", "`maximum` 100");
    table(schema, &[json!({"amount": 100, "note": "x", "currency": "EUR"})], &[over]);
}

#[test]
fn schemas_are_combined() {
    let schema = json!({
        "$defs": {"iban": {"type": "string", "minLength": 3}, "tree": {"type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}},
        "allOf": [{"required": ["to"]}, {"properties": {"to": {"$ref": "#/$defs/iban"}}}],
        "anyOf": [{"required": ["note"]}, {"properties": {"kind": {"const": "plain"}}, "required": ["kind"]}],
        "properties": {"tree": {"$ref": "#/%24defs/tree"}, "to": {"$ref": "#/$defs/iban", "maxLength": 5}},
    });
    let deep = json!({"children": [{"children": []}, {"children": [{"children": 1}]}]});
    table(
        schema,
        &[
            json!({"to": "DE1", "note": "x"}),
            json!({"to": "DE1", "kind": "plain", "tree": {"children": [{}]}}),
        ],
        &[
            (json!({"note": "x"}), "/to", "`required`"),
            (json!({"to": "D", "note": "x"}), "/to", "`minLength` 3"),
            (json!({"to": "DE1234", "note": "x"}), "/to", "`maxLength` 5"),
            (json!({"to": "DE1", "kind": "other"}), "", "`anyOf`"),
            (
                json!({"to": "DE1", "note": "x", "tree": deep}),
                "/tree/children/1/children/0/children",
                "`type` array",
            ),
        ],
    );
}

#[test]
fn a_schema_that_is_not_one_is_refused_at_its_place() {
    for (schema, pointer, problem) in [
        (json!({"type": "text"}), "/type", "must be one or several of null"),
        (json!({"type": []}), "/type", "must be one or several of null"),
        (
            json!({"properties": {"a/b": {"minLength": -1}}}),
            "/properties/a~1b/minLength",
            "whole number",
        ),
        (
            json!({"properties": {"a": {"required": true}}}),
            "/properties/a/required",
            "must be a list",
        ),
        (
            json!({"properties": {"a": {"minimum": "5"}}}),
            "/properties/a/minimum",
            "must be a number",
        ),
        (json!({"minimum": 5, "exclusiveMinimum": true}), "/exclusiveMinimum", "must be a number"),
        (json!({"properties": {"a": "string"}}), "/properties/a", "must be a schema"),
        (json!({"items": [{}]}), "/items", "one schema for all items"),
        (json!({"anyOf": []}), "/anyOf", "must have a schema"),
        (json!({"$ref": "https://example.org/schema"}), "/$ref", "remote schemas are not fetched"),
        (json!({"$ref": "other.json#/a"}), "/$ref", "remote schemas are not fetched"),
        (json!({"$ref": "#name"}), "/$ref", "remote schemas are not fetched"),
        (json!({"$ref": "#/$defs/none"}), "/$ref", "which is not there"),
        (json!({"pattern": "(?=a)b"}), "/pattern", "look-around"),
        (json!({"pattern": 1}), "/pattern", "must be a text"),
        (json!({"$ref": "#"}), "", "refers to itself"),
        (
            json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}),
            "/$defs/a",
            "itself",
        ),
    ] {
        let faults = check(&schema).faults;
        assert_eq!(faults.len(), 1, "{schema}: {faults:?}");
        assert!(faults[0].problem.contains(problem), "{schema}: {faults:?}");
        if !problem.contains("itself") {
            assert_eq!(faults[0].pointer, pointer, "{schema}");
        }
        // If such a schema is stored, it does not accept any value.
        assert!(broken(&schema, &json!({"to": "x"})).is_some(), "{schema}");
    }
}

#[test]
fn other_keywords_are_named_and_do_nothing() {
    let schema = json!({"title": "t", "$schema": "x", "x-own": 1, "minProperties": 9, "not": {}, "properties": {
        "a": {"format": "email", "description": "d", "default": 1, "multipleOf": 2, "uniqueItems": true}}});
    let mut ignored = check(&schema).ignored;
    ignored.sort();
    let own = |name: &str| format!("/properties/a/{name}");
    let expected = [
        "/minProperties".to_owned(),
        "/not".to_owned(),
        own("format"),
        own("multipleOf"),
        own("uniqueItems"),
    ];
    assert_eq!(ignored, expected);
    table(schema, &[json!({"a": [3, 3]}), json!({"a": "no address"})], &[]);
}

/// A schema is refused as too expensive because of its patterns, because too many schemas apply to
/// one value, or because its cost doubles at each level of the context.
#[test]
fn what_would_cost_too_much_is_refused() {
    let long = "a[ab]{200}c";
    let doubling = json!({"$defs": {"t": {"allOf": [
        {"properties": {"x": {"$ref": "#/$defs/t"}}}, {"properties": {"x": {"$ref": "#/$defs/t"}}}]}}, "$ref": "#/$defs/t"});
    let through_others = json!({"$defs": {"t": {"allOf": [
        {"additionalProperties": {"$ref": "#/$defs/t"}}, {"properties": {"x": {"$ref": "#/$defs/t"}}}]}}, "$ref": "#/$defs/t"});
    let many: Vec<Value> =
        (0..80).map(|n| json!({"properties": {"a": {"minLength": n}}})).collect();
    let mut chain = json!({});
    (0..40).for_each(|_| chain = json!({"allOf": [chain]}));
    let patterns: Vec<Value> =
        (0..8).map(|n| json!({"pattern": format!("[a-z]{{{n},12}}!")})).collect();
    for schema in [
        json!({"properties": {"a": {"pattern": long}}}),
        json!({"properties": {"a": {"items": {"items": {"pattern": long}}}}}),
        json!({"properties": {"a": {"allOf": patterns}}}),
        doubling,
        through_others,
        json!({"allOf": many}),
        chain,
    ] {
        let faults = check(&schema).faults;
        assert_eq!(faults.len(), 1, "{schema}");
        assert!(
            faults[0].problem.contains("steps") || faults[0].problem.contains("chain"),
            "{faults:?}"
        );
        assert!(broken(&schema, &json!({})).is_some(), "{schema}");
    }
}

#[test]
fn ordinary_schemas_are_cheap_enough() {
    let text = |pattern: &str| json!({"type": "string", "pattern": pattern, "maxLength": 200});
    let wide: serde_json::Map<String, Value> = (0..300)
        .map(|n| (format!("m{n}"), json!({"type": ["string", "null"], "enum": ["a", "b"]})))
        .collect();
    let filter = json!({"$defs": {"f": {"anyOf": [
        {"required": ["and"], "properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/f"}}}},
        {"required": ["or"], "properties": {"or": {"type": "array", "items": {"$ref": "#/$defs/f"}}}},
        {"required": ["not"], "properties": {"not": {"$ref": "#/$defs/f"}}},
        {"required": ["field"], "properties": {"field": text("^[a-z_.]+$")}}]}}, "properties": {"q": {"$ref": "#/$defs/f"}}});
    for schema in [
        json!({"properties": wide}),
        json!({"properties": {"iban": text("^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$"), "mail": text(r"^[^@\s]+@[^@\s]+\.[^@\s]+$"),
            "id": text("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"), "any": text("^.{1,500}$")}}),
        filter,
    ] {
        assert_eq!(check(&schema).faults, [], "{schema}");
    }
}

/// The worst-case cost of an accepted schema is bounded. The test uses a schema near that bound, and
/// a context near the size limit.
#[test]
fn the_worst_context_is_judged_in_time() {
    let schema = json!({"properties": {"a": {"items": {"pattern": "a[ab]{58}!"}}, "b": {"items": {"items": {"anyOf": [
        {"required": ["x"]}, {"items": {"const": 1}}, {"type": "string"}, true]}}}}});
    assert_eq!(check(&schema).faults, []);
    let text: String = (0..2_000_u32).map(|n| if n * n % 7 < 3 { 'a' } else { 'b' }).collect();
    let value = json!({"a": vec![text + "!"; 60], "b": vec![vec![json!([]); 400]; 80]});
    let schema = InputSchema::new("digest".to_owned(), schema.to_string());
    let start = std::time::Instant::now();
    let _ = schema.judge(Json::from(&value), &At::context(false));
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}
