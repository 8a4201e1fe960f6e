//! Tests that the types that policies rely on are enforced.
//!
//! If the checks accept a request, a strictly valid policy never reads a value of another type or
//! an absent value.

use proptest::{collection::vec, prelude::any};
use serde_json::{Map, Value, json};

use super::{
    input::{forbid, with_schema},
    *,
};
use crate::{
    policy::validation::{
        ContextSchema, InputType, Known, Members, Severity, Surroundings, ToolInput, validate,
    },
    request::input_schema::InputAt,
};

const ACTION: &str = "payment.execute";

/// Choices made from a sequence of bytes. After the last byte, every choice is the first option.
struct Dice<'b>(std::slice::Iter<'b, u8>);

impl Dice<'_> {
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or_default()) % count
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

const NAMES: [&str; 4] = ["a", "b", "amount", "arguments"];

/// Returns a tenant's declaration of a field.
fn declared(dice: &mut Dice<'_>, depth: usize) -> Value {
    let kind = match dice.below(if depth > 1 { 6 } else { 7 }) {
        0 => json!("string"),
        1 => json!("integer"),
        2 => json!("decimal"),
        3 => json!("boolean"),
        4 => json!("set<string>"),
        5 => json!(dice.of(&["set<integer>", "set<decimal>", "set<boolean>"])),
        _ => json!({"x": declared(dice, depth + 1), "y": declared(dice, depth + 1)}),
    };
    if dice.below(2) == 0 { kind } else { json!({"type": kind, "required": true}) }
}

/// Returns a tool's schema for a value.
fn schema(dice: &mut Dice<'_>, depth: usize) -> Value {
    match dice.below(if depth > 2 { 6 } else { 9 }) {
        0 => json!({"type": "string"}),
        1 => json!({"type": "integer"}),
        2 => json!({"type": "boolean"}),
        3 => json!({"type": "number"}),
        4 => json!({"type": ["string", "null"]}),
        5 => json!({"enum": ["a", 1]}),
        6 => json!({"type": "array", "items": schema(dice, depth + 1)}),
        _ => object(dice, depth),
    }
}

fn object(dice: &mut Dice<'_>, depth: usize) -> Value {
    let names = if depth == 0 { &NAMES[..] } else { &["x", "y"] };
    let mut properties = Map::new();
    let mut required = Vec::new();
    for name in names {
        if dice.below(2) == 0 {
            properties.insert((*name).to_owned(), schema(dice, depth + 1));
        }
        if dice.below(3) == 0 {
            required.push(*name);
        }
    }
    json!({"type": "object", "properties": properties, "required": required})
}

fn value(dice: &mut Dice<'_>, depth: usize) -> Value {
    match dice.below(if depth > 2 { 8 } else { 11 }) {
        0 => json!("a"),
        1 => json!(5),
        2 => json!(5.0),
        3 => json!(0.5),
        4 => json!(true),
        5 => json!(0.123_456),
        6 => Value::Null,
        7 => json!(""),
        8 => Value::Array((0..dice.below(3)).map(|_| value(dice, depth + 1)).collect()),
        _ => json!({"x": value(dice, depth + 1), "y": value(dice, depth + 1)}),
    }
}

/// Returns a value that usually has the type.
fn fitting(dice: &mut Dice<'_>, kind: &InputType, depth: usize) -> Value {
    if dice.below(8) == 7 {
        return value(dice, depth);
    }
    match kind {
        InputType::Boolean => json!(false),
        InputType::Integer => dice.of(&[json!(3), json!(7.0), json!(1)]),
        InputType::Decimal => dice.of(&[json!(3), json!(7.5), json!(0.0001), json!(2.0)]),
        InputType::String => json!("abc"),
        InputType::Set(of) => {
            Value::Array((0..dice.below(3)).map(|_| fitting(dice, of, depth + 1)).collect())
        }
        InputType::Record(of) => context(dice, of, depth + 1),
    }
}

fn context(dice: &mut Dice<'_>, members: &Members, depth: usize) -> Value {
    let mut context = Map::new();
    for (name, member) in members {
        if member.required || dice.below(2) == 0 {
            context.insert(name.clone(), fitting(dice, &member.kind, depth));
        }
    }
    Value::Object(context)
}

/// Collects conditions that read every field by its type, with guards for optional fields.
fn reads(path: &str, members: &Members, guards: &str, all: &mut Vec<String>) {
    for (name, member) in members {
        let guards = if member.required {
            guards.to_owned()
        } else {
            format!("{guards}{path} has {name} && ")
        };
        let own = format!("{path}.{name}");
        let read = match &member.kind {
            InputType::Boolean => own.clone(),
            InputType::Integer => format!("{own} > 1000"),
            InputType::Decimal => format!("{own}.greaterThan(decimal(\"1000.0\"))"),
            InputType::String => format!("{own} like \"zzz*\""),
            InputType::Set(of) => match &**of {
                InputType::Boolean => format!("{own}.containsAll([true, false])"),
                InputType::Integer => format!("{own}.contains(1000)"),
                InputType::Decimal => format!("{own}.contains(decimal(\"1000.0\"))"),
                InputType::String => format!("{own}.contains(\"zzz\")"),
                InputType::Set(_) | InputType::Record(_) => format!("{own}.isEmpty()"),
            },
            InputType::Record(inner) => {
                reads(&own, inner, &guards, all);
                format!("{own} == {own}")
            }
        };
        all.push(format!("{guards}{read}"));
    }
}

struct Drawn {
    surroundings: Surroundings,
    declared: Value,
    tools: Vec<(Tool, Value)>,
}

fn drawn(dice: &mut Dice<'_>) -> Drawn {
    let mut members = Map::new();
    for name in ["a", "b"] {
        if dice.below(3) == 0 {
            members.insert(name.to_owned(), declared(dice, 0));
        }
    }
    let declared = json!({dice.of(&["payment.*", "*", "other"]): members});
    let tools: Vec<_> = (0..dice.below(3))
        .map(|number| {
            let at = dice.of(&[InputAt::Context, InputAt::Context, InputAt::Arguments]);
            with_schema(&format!("tool-{number}"), &object(dice, 0), at)
        })
        .collect();
    let inputs = tools.iter().map(|(tool, schema)| {
        let at = tool.input.as_ref().unwrap().at;
        ToolInput::of(tool.actions.clone(), Some(schema), at)
    });
    let own = ContextSchema::of(declared.clone()).unwrap();
    let surroundings = Surroundings::new(own, inputs.collect());
    Drawn { surroundings, declared, tools }
}

fn world(drawn: &Drawn, named: Option<&str>) -> World {
    let mut world = World::with_tools(&drawn.tools, named);
    world.declare(drawn.declared.clone());
    world
}

fn runner(cases: u32) -> proptest::test_runner::TestRunner {
    let config =
        proptest::prelude::ProptestConfig { cases, failure_persistence: None, ..<_>::default() };
    proptest::test_runner::TestRunner::new(config)
}

#[test]
fn a_request_that_is_accepted_never_errs_in_a_strictly_valid_policy() {
    let seen = std::cell::RefCell::new(std::collections::BTreeMap::<Reason, usize>::new());
    let outcome = runner(500).run(&vec(any::<u8>(), 0..160), |bytes| {
        let dice = &mut Dice(bytes.iter());
        let drawn = drawn(dice);
        let members = drawn.surroundings.input_of(ACTION);
        let mut conditions = Vec::new();
        reads("context.input", &members, "", &mut conditions);
        let asked = context(dice, &members, 0);
        let mut asked = asked.as_object().cloned().unwrap();
        if !asked.get("amount").is_none_or(Value::is_number) {
            asked.remove("amount");
        }
        let named = drawn.tools.get(dice.below(3)).map(|(tool, _)| tool.id.clone());
        for condition in conditions {
            let text = format!(
                "forbid(principal, action == Svc::Action::\"{ACTION}\", resource) when {{ {condition} }};"
            );
            let found = validate(&text, &drawn.surroundings, &Known::default());
            assert!(found.iter().all(|one| one.severity != Severity::Error), "{text}: {found:?}");
            let mut world = world(&drawn, named.as_deref());
            world.gathered.policies = vec![forbid(&condition)];
            world.draft.context.clone_from(&asked);
            let Ok(request) = Request::new(world.draft.clone()) else { return Ok(()) };
            let verdict = decide(&request, &world.facts(), now());
            assert_ne!(verdict.reason_code, Reason::RuleError, "{condition}: {asked:?} {:?}", drawn.declared);
            *seen.borrow_mut().entry(verdict.reason_code).or_default() += 1;
        }
        Ok(())
    });
    if let Err(why) = outcome {
        panic!("{why}");
    }
    let seen = seen.into_inner();
    for reason in [Reason::PermissionGranted, Reason::ContextInvalid, Reason::PolicyDenied] {
        assert!(seen.get(&reason).is_some_and(|count| *count > 10), "{seen:?}");
    }
}

/// Whether a value has the type, for values of all types.
fn has_type(kind: &InputType, value: &Value) -> bool {
    match (kind, value) {
        (InputType::Boolean, Value::Bool(_)) | (InputType::String, Value::String(_)) => true,
        (InputType::Integer, Value::Number(number)) => number.as_f64().unwrap().fract() == 0.0,
        (InputType::Decimal, Value::Number(number)) => number.to_string().len() < 7,
        (InputType::Set(of), Value::Array(items)) => items.iter().all(|item| has_type(of, item)),
        (InputType::Record(of), Value::Object(members)) => of.iter().all(|(name, member)| {
            let value = members.get(name).filter(|value| !value.is_null());
            value.map_or(!member.required, |value| has_type(&member.kind, value))
        }),
        _ => false,
    }
}

#[test]
fn every_type_that_validation_gives_a_member_is_enforced() {
    let outcome = runner(2_000).run(&vec(any::<u8>(), 0..160), |bytes| {
        let dice = &mut Dice(bytes.iter());
        let drawn = drawn(dice);
        let members = drawn.surroundings.input_of(ACTION);
        let named = drawn.tools.get(dice.below(3)).map(|(tool, _)| tool.id.clone());
        for (name, member) in &members {
            let mut asked = context(dice, &members, 0).as_object().cloned().unwrap();
            let wrong = value(dice, 0);
            let absent = wrong.is_null();
            if if absent { !member.required } else { has_type(&member.kind, &wrong) } {
                continue;
            }
            asked.insert(name.clone(), wrong);
            let mut world = world(&drawn, named.as_deref());
            world.draft.context.clone_from(&asked);
            let Ok(request) = Request::new(world.draft.clone()) else { continue };
            let verdict = decide(&request, &world.facts(), now());
            assert_eq!(
                verdict.reason_code,
                Reason::ContextInvalid,
                "{name}: {asked:?} {members:?}"
            );
        }
        Ok(())
    });
    if let Err(why) = outcome {
        panic!("{why}");
    }
}

/// Requests never reach a state that the validator calls impossible.
#[test]
fn a_guard_that_the_validator_calls_impossible_is_one() {
    let schema = json!({"type": "object", "required": ["region"], "properties": {"region": {"type": "string"}}});
    let tools = vec![with_schema("tool-1", &schema, InputAt::Context)];
    let inputs = tools
        .iter()
        .map(|(tool, schema)| ToolInput::of(tool.actions.clone(), Some(schema), InputAt::Context));
    let surroundings = Surroundings::new(ContextSchema::default(), inputs.collect());
    let condition = "!(context.input has region)";
    let text = format!(
        "forbid(principal, action == Svc::Action::\"{ACTION}\", resource) when {{ {condition} }};"
    );
    let found = validate(&text, &surroundings, &Known::default());
    assert!(found.iter().any(|one| one.problem.contains("impossible")), "{found:?}");
    for named in [Some("tool-1"), None] {
        for context in
            [json!({}), json!({"region": null}), json!({"region": "EU"}), json!({"Region": "EU"})]
        {
            let mut world = World::with_tools(&tools, named);
            world.gathered.policies = vec![forbid(condition)];
            let reason = world.asked(&context).reason_code;
            assert_ne!(reason, Reason::PolicyDenied, "{context}");
        }
    }
}
