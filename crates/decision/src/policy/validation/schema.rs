//! The Cedar schema of a tenant: the names that policies can refer to, and their types.
//!
//! Its entities and context match `cedar_request.rs`. The contexts of actions differ only in
//! `input`: one action can represent all actions with the same input.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy_core::ast::Var;
use serde_json::{Map, Value, json};

use super::{
    input_type::Surroundings,
    members::{InputType, Member, Members},
};
use crate::pattern::{is_below, prefixes};

/// Represents every action that is not named.
pub(super) const ANY: &str = "any";

/// The maximum number of kinds of unnamed actions to check a text for, which bounds the check.
const MOST_KINDS: usize = 64;

/// The actions of the schema, with their input.
pub(super) type Actions = BTreeMap<String, Members>;

/// Returns the actions that a text must be checked for: the named actions, and one action of each
/// other kind.
///
/// `named` may contain prefixes.
pub(super) fn actions(named: &BTreeSet<String>, surroundings: &Surroundings) -> Actions {
    let mut actions = Actions::new();
    let mut kinds = BTreeSet::new();
    let own = named.iter().cloned();
    for action in own.chain([ANY.to_owned()]).chain(surroundings.examples()) {
        let input = surroundings.input_of(&action);
        let within = |prefix: &&String| **prefix == action || is_below(&action, prefix);
        let places: Vec<&String> = named.iter().filter(within).collect();
        let is_new = kinds.len() < MOST_KINDS && kinds.insert((places, input.clone()));
        if named.contains(&action) || is_new {
            actions.insert(action, input);
        }
    }
    actions
}

/// Returns the schema in Cedar's JSON form, with fields that are typed by the text's own use.
pub(super) fn schema(actions: &Actions, by_use: &Members) -> Value {
    let mut all: Map<String, Value> = Map::new();
    for (name, input) in actions {
        let mut input = input.clone();
        merge(&mut input, by_use);
        let mut action = member_of(name);
        action["appliesTo"] = json!({
            "principalTypes": ["Principal"],
            "resourceTypes": ["Resource", "Tenant"],
            "context": context(&input),
        });
        all.insert(name.clone(), action);
    }
    for prefix in actions.keys().flat_map(|name| prefixes(name)) {
        all.entry(prefix).or_insert_with(|| member_of(prefix));
    }
    let text = |required: bool| json!({"type": "String", "required": required});
    let record = |attributes: Value| json!({"type": "Record", "attributes": attributes});
    json!({"Svc": {
        "entityTypes": {
            "Team": {},
            "Tenant": {},
            "Principal": {
                "memberOfTypes": ["Team"],
                "shape": record(json!({"class": text(true), "name": text(true)})),
            },
            "Resource": {
                "memberOfTypes": ["Tenant"],
                "shape": record(json!({
                    "kind": text(true), "name": text(true), "sensitivity": text(false),
                })),
            },
        },
        "actions": all,
    }})
}

/// Returns the names of the fields that a request's principal, resource or context can have.
pub(super) fn members(of: Var) -> Vec<String> {
    let kind = match of {
        Var::Principal => "Principal",
        Var::Resource => "Resource",
        Var::Context => return names(&context(&Members::new())),
        Var::Action => return Vec::new(),
    };
    let all = schema(&Actions::new(), &Members::new());
    all.pointer(&format!("/Svc/entityTypes/{kind}/shape")).map(names).unwrap_or_default()
}

fn names(record: &Value) -> Vec<String> {
    let attributes = record.get("attributes").and_then(Value::as_object);
    attributes.map(|all| all.keys().cloned().collect()).unwrap_or_default()
}

fn member_of(action: &str) -> Value {
    let parents: Vec<_> = prefixes(action).map(|prefix| json!({"id": prefix})).collect();
    json!({"memberOf": parents})
}

/// Adds undeclared fields.
fn merge(input: &mut Members, by_use: &Members) {
    for (name, used) in by_use {
        match (input.get_mut(name).map(|known| &mut known.kind), &used.kind) {
            (None, _) => {
                input.insert(name.clone(), used.clone());
            }
            (Some(InputType::Record(known)), InputType::Record(more)) => merge(known, more),
            _ => {}
        }
    }
}

/// Returns the type of the context, as in `cedar_request.rs`. Fields that a request may leave out
/// are optional.
fn context(input: &Members) -> Value {
    let optional = |kind: Value| {
        let mut kind = kind;
        kind["required"] = false.into();
        kind
    };
    let mut attributes = Map::new();
    for name in [
        "purpose",
        "jurisdiction",
        "subdivision",
        "currency",
        "effect_class",
        "reversibility",
        "risk_tier",
        "oversight",
        "delegation",
    ] {
        attributes.insert(name.to_owned(), optional(json!({"type": "String"})));
    }
    let more = [
        ("rollback_available", optional(json!({"type": "Boolean"}))),
        ("amount", optional(json!({"type": "Extension", "name": "decimal"}))),
        ("now", json!({"type": "Extension", "name": "datetime"})),
        (
            "local",
            json!({"type": "Record", "attributes": {
                "weekday": {"type": "Long"},
                "date": {"type": "String"},
                "hour": {"type": "Long"},
                "minute": {"type": "Long"},
            }}),
        ),
        ("input", of_type(&InputType::Record(input.clone()))),
    ];
    attributes.extend(more.map(|(name, kind)| (name.to_owned(), kind)));
    json!({"type": "Record", "attributes": attributes})
}

fn of_type(kind: &InputType) -> Value {
    match kind {
        InputType::Boolean => json!({"type": "Boolean"}),
        InputType::Integer => json!({"type": "Long"}),
        InputType::Decimal => json!({"type": "Extension", "name": "decimal"}),
        InputType::String => json!({"type": "String"}),
        InputType::Set(of) => json!({"type": "Set", "element": of_type(of)}),
        InputType::Record(members) => {
            let attribute = |(name, member): (&String, &Member)| {
                let mut kind = of_type(&member.kind);
                kind["required"] = member.required.into();
                (name.clone(), kind)
            };
            let attributes: Map<_, _> = members.iter().map(attribute).collect();
            json!({"type": "Record", "attributes": attributes})
        }
    }
}
