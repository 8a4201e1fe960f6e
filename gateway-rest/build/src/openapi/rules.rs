//! Validation rules (`buf.validate`) as JSON Schema keywords.

use prost_reflect::{DynamicMessage, Value as Rule};
use serde_json::{Value, json};

use crate::descriptor;

/// Applies the rules of one value. The rules of its type are in the member with the type's name.
pub(super) fn apply(schema: &mut Value, rules: &DynamicMessage) {
    if let Some(rules) = descriptor::inner(rules, "string") {
        let lengths = [("min_len", "minLength"), ("max_len", "maxLength"), ("pattern", "pattern")];
        copy(schema, &rules, &lengths);
        if let Some(length) = number(&rules, "len") {
            schema["minLength"] = length.clone();
            schema["maxLength"] = length;
        }
        let formats = [
            ("email", "email"),
            ("hostname", "hostname"),
            ("ipv4", "ipv4"),
            ("ipv6", "ipv6"),
            ("uri", "uri"),
            ("uuid", "uuid"),
        ];
        for (rule, format) in formats {
            if descriptor::flag(&rules, rule) {
                schema["format"] = format.into();
            }
        }
        allowed(schema, &rules);
    }
    let numeric = ["int64", "int32", "sint32", "sfixed32", "uint32", "fixed32", "float", "double"];
    for rules in numeric.iter().filter_map(|kind| descriptor::inner(rules, kind)) {
        let bounds = [
            ("gte", "minimum"),
            ("lte", "maximum"),
            ("gt", "exclusiveMinimum"),
            ("lt", "exclusiveMaximum"),
        ];
        copy(schema, &rules, &bounds);
        allowed(schema, &rules);
    }
}

/// Makes a schema accept the default of its type, since responses contain members that were never
/// set.
pub(super) fn allow_default(schema: &mut Value) {
    let is_text = schema["type"] == "string";
    let Some(members) = schema.as_object_mut() else { return };
    for keyword in ["minLength", "pattern", "format", "minimum", "exclusiveMinimum", "const"] {
        // The format of a number is its width.
        if is_text || keyword != "format" {
            members.remove(keyword);
        }
    }
    if let Some(values) = members.get_mut("enum").and_then(Value::as_array_mut) {
        values.push(if is_text { json!("") } else { json!(0) });
    }
}

/// Applies the values of an `in` rule, or of `const`.
fn allowed(schema: &mut Value, rules: &DynamicMessage) {
    let values = rules.get_field_by_name("in");
    let values = values.as_ref().and_then(|values| values.as_list()).unwrap_or_default();
    if !values.is_empty() {
        schema["enum"] = values.iter().filter_map(json_of).collect();
    }
    if let Some(only) = number(rules, "const") {
        schema["const"] = only;
    }
}

pub(super) fn copy(schema: &mut Value, rules: &DynamicMessage, names: &[(&str, &str)]) {
    for (rule, keyword) in names {
        if let Some(value) = number(rules, rule) {
            schema[*keyword] = value;
        }
    }
}

fn number(rules: &DynamicMessage, name: &str) -> Option<Value> {
    if !rules.has_field_by_name(name) {
        return None;
    }
    json_of(rules.get_field_by_name(name)?.as_ref())
}

fn json_of(value: &Rule) -> Option<Value> {
    Some(match value {
        Rule::Bool(value) => json!(value),
        Rule::I32(value) => json!(value),
        Rule::I64(value) => json!(value),
        Rule::U32(value) => json!(value),
        Rule::U64(value) => json!(value),
        Rule::F32(value) => json!(value),
        Rule::F64(value) => json!(value),
        Rule::String(value) => json!(value),
        _ => return None,
    })
}
