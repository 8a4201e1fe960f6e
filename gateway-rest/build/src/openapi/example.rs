//! Example values: from a comment's `Example: …` or the project's examples, otherwise from type,
//! rules and name.
//!
//! A request's example is the example in its message's comment. Without one it contains the
//! required members and the members with an example of their own; other members could exclude one
//! another. A response's example has all members.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value as Rule};
use serde_json::{Map, Number, Value, json};

use super::{
    pattern,
    schema::{Use, is_given, may_be_null},
};
use crate::{
    Options,
    descriptor::{self, Comment},
};

/// The maximum nesting of messages. Deeper and recursive messages are left out if the member may be
/// absent.
const DEPTH: usize = 4;

/// Parses an `Example:` line: JSON of the field's type, otherwise plain text.
pub(super) fn parsed(written: &str, field: &FieldDescriptor) -> Value {
    let is_text = field.kind() == Kind::String && !field.is_list();
    let value = match serde_json::from_str::<Value>(written) {
        Ok(value) if !is_text || value.is_string() => value,
        _ => written.into(),
    };
    // A list may have a single item as its example.
    if field.is_list() && !value.is_array() { json!([value]) } else { value }
}

/// Returns an example of the whole message, without some members.
pub(super) fn message(
    message: &MessageDescriptor,
    used: Use,
    options: &Options,
    without: &[&str],
) -> Value {
    Examples { used, options, within: Vec::new() }.message(message, without)
}

/// Returns an example of one field.
pub(super) fn field(field: &FieldDescriptor, used: Use, options: &Options) -> Option<Value> {
    Examples { used, options, within: Vec::new() }.field(field)
}

/// Returns the project's example of a field of a request.
pub(super) fn given(field: &FieldDescriptor, options: &Options) -> Option<Value> {
    Examples { used: Use::Input, options, within: Vec::new() }.given(field)
}

struct Examples<'a> {
    used: Use,
    options: &'a Options,
    within: Vec<String>,
}

impl Examples<'_> {
    fn message(&mut self, message: &MessageDescriptor, without: &[&str]) -> Value {
        let written = Comment::of_message(message).example;
        let written: Option<Map<String, Value>> =
            written.and_then(|text| serde_json::from_str(&text).ok());
        let output = self.used == Use::Output;
        if let (Some(mut members), false) = (written.clone(), output) {
            members.retain(|name, _| {
                let field = message.get_field_by_name(name);
                let field =
                    field.unwrap_or_else(|| panic!("{}: no field `{name}`", message.full_name()));
                is_given(&field, self.used) && !without.contains(&name.as_str())
            });
            return members.into();
        }
        self.within.push(message.full_name().to_owned());
        let mut members = Map::new();
        for field in descriptor::fields(message) {
            if !is_given(&field, self.used) || without.contains(&field.name()) {
                continue;
            }
            // Only the first member of a oneof occurs in an example.
            let others = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
            let first = others.is_none_or(|oneof| oneof.fields().next().as_ref() == Some(&field));
            let shown = || Comment::of_field(&field).example.is_some();
            let wanted = output || descriptor::is_required(&field, self.options) || shown();
            let example = if first && wanted { self.field(&field) } else { None };
            if let Some(example) = example.or_else(|| output.then(|| self.absent(&field))) {
                members.insert(field.name().to_owned(), example);
            }
        }
        self.within.pop();
        for (name, value) in written.into_iter().flatten() {
            if let Some(field) = message.get_field_by_name(&name) {
                members.insert(name, self.completed(value, &field));
            }
        }
        members.into()
    }

    /// Returns the value of an absent member of a response.
    fn absent(&self, field: &FieldDescriptor) -> Value {
        let is_list = field.is_list() && !descriptor::bounds(field, self.options);
        if is_list { json!([]) } else { Value::Null }
    }

    fn field(&mut self, field: &FieldDescriptor) -> Option<Value> {
        if let Some(written) = Comment::of_field(field).example {
            return Some(self.completed(parsed(&written, field), field));
        }
        if let Some(given) = self.given(field) {
            return Some(self.completed(given, field));
        }
        if field.is_map() {
            return Some(json!({}));
        }
        if descriptor::document(field, self.options).is_some() {
            // The form of a document is not known here.
            return None;
        }
        let must = !field.is_list() && !may_be_null(field, self.used, self.options);
        let recurs = |message: &MessageDescriptor| {
            let deep = !must && self.within.len() >= DEPTH;
            deep || self.within.iter().any(|own| own == message.full_name())
        };
        if descriptor::plain_message(&field.kind()).as_ref().is_some_and(recurs) {
            return None;
        }
        let rules = descriptor::rules(field, self.options);
        if field.is_list() {
            let rules = rules.as_ref().and_then(|rules| descriptor::inner(rules, "repeated"));
            let rules = rules.as_ref().and_then(|rules| descriptor::inner(rules, "items"));
            let singular = field.name().strip_suffix('s').unwrap_or(field.name());
            let item = self.single(&field.kind(), singular, rules.as_ref())?;
            return Some(json!([item]));
        }
        self.single(&field.kind(), field.name(), rules.as_ref())
    }

    /// Returns the project's example of the field; a list may have a single item as its example.
    fn given(&self, field: &FieldDescriptor) -> Option<Value> {
        let own = format!("{}.{}", field.parent_message().name(), field.name());
        let examples = &self.options.examples;
        let given = examples.get(&own).or_else(|| examples.get(field.name()))?;
        // Only a response contains absent members.
        if given.is_null() {
            return (self.used == Use::Output).then(|| self.absent(field));
        }
        let one = field.is_list() && !given.is_array();
        Some(if one { json!([given]) } else { given.clone() })
    }

    /// Adds the members that a written example lacks and a response contains.
    fn completed(&mut self, value: Value, field: &FieldDescriptor) -> Value {
        let inner = descriptor::plain_message(&field.kind());
        let Some(inner) = inner.filter(|_| self.used == Use::Output && !field.is_map()) else {
            return value;
        };
        match value {
            Value::Array(items) => {
                items.into_iter().map(|item| self.completed(item, field)).collect()
            }
            Value::Object(mut members) => {
                for field in descriptor::fields(&inner) {
                    let member = match members.remove(field.name()) {
                        Some(written) => self.completed(written, &field),
                        None if field.is_list() => self.absent(&field),
                        None if may_be_null(&field, self.used, self.options) => Value::Null,
                        None => self.field(&field).unwrap_or_else(|| self.absent(&field)),
                    };
                    members.insert(field.name().to_owned(), member);
                }
                members.into()
            }
            other => other,
        }
    }

    fn single(&mut self, kind: &Kind, name: &str, rules: Option<&DynamicMessage>) -> Option<Value> {
        Some(match kind {
            Kind::Bool => json!(true),
            Kind::String => text(name, rules.and_then(|rules| descriptor::inner(rules, "string")))?,
            Kind::Bytes => json!("AAEC"),
            Kind::Float | Kind::Double => number(rules, 0.5),
            Kind::Enum(kind) => json!(descriptor::words(kind).first()?.1),
            Kind::Message(message) => return self.held(message, name),
            _ => number(rules, 1.0),
        })
    }

    fn held(&mut self, message: &MessageDescriptor, name: &str) -> Option<Value> {
        let full = message.full_name();
        if let Some(inner) = descriptor::wrapped(full) {
            return self.single(&inner, name, None);
        }
        match full.strip_prefix("google.protobuf.") {
            Some("Timestamp") => Some(json!("2026-01-31T09:30:00Z")),
            Some("Duration") => Some(json!("1.5s")),
            Some("FieldMask") => Some(json!("name")),
            Some("Struct") => Some(json!({"key": "value"})),
            Some("Value") => Some(json!("value")),
            Some("ListValue") => Some(json!(["value"])),
            _ => Some(self.message(message, &[])),
        }
    }
}

/// Returns a text that satisfies its rules; `None` if the pattern is not supported and an
/// `Example:` line is needed.
fn text(name: &str, rules: Option<DynamicMessage>) -> Option<Value> {
    let Some(rules) = rules else { return Some(guess(name).into()) };
    let words = rules.get_field_by_name("in");
    let first = words.as_ref().and_then(|words| words.as_list()?.first()?.as_str());
    if let Some(word) = first {
        return Some(word.into());
    }
    for (rule, example) in [
        ("email", "name@example.com"),
        ("uri", "https://example.com"),
        ("hostname", "example.com"),
        ("uuid", "01976f3c-8f60-7000-8000-000000000000"),
        ("ipv4", "192.0.2.1"),
        ("ipv6", "2001:db8::1"),
    ] {
        if descriptor::flag(&rules, rule) {
            return Some(example.into());
        }
    }
    let length = |rule: &str| {
        let value = rules.has_field_by_name(rule).then(|| rules.get_field_by_name(rule))??;
        value.as_u64().and_then(|value| usize::try_from(value).ok())
    };
    if rules.has_field_by_name("pattern") {
        let pattern = descriptor::text(&rules, "pattern");
        return pattern::matching(&pattern, length("min_len").unwrap_or(0)).map(Value::from);
    }
    let mut guess = guess(name);
    while guess.len() < length("min_len").unwrap_or(0) {
        guess.push('x');
    }
    guess.truncate(length("max_len").unwrap_or(usize::MAX));
    Some(guess.into())
}

/// Returns a plausible text for a field with this name.
fn guess(name: &str) -> String {
    let last = name.rsplit('_').next().unwrap_or(name);
    let guess = match last {
        "email" => "name@example.com",
        "url" | "uri" | "website" => "https://example.com",
        "currency" => "EUR",
        "country" | "jurisdiction" => "DE",
        "amount" | "price" | "total" => "100.00",
        "token" => "",
        _ => return name.replace('_', " "),
    };
    guess.to_owned()
}

/// Returns `usual`, or the nearest number that the rules allow.
fn number(rules: Option<&DynamicMessage>, usual: f64) -> Value {
    let kinds = ["int32", "sint32", "uint32", "fixed32", "sfixed32", "float", "double"];
    let rules =
        rules.and_then(|rules| kinds.iter().find_map(|kind| descriptor::inner(rules, kind)));
    let bound = |name: &str| {
        let rules = rules.as_ref().filter(|rules| rules.has_field_by_name(name))?;
        match rules.get_field_by_name(name)?.as_ref() {
            Rule::I32(value) => Some(f64::from(*value)),
            Rule::U32(value) => Some(f64::from(*value)),
            Rule::F32(value) => Some(f64::from(*value)),
            Rule::F64(value) => Some(*value),
            _ => None,
        }
    };
    let least = bound("gte").or_else(|| bound("gt").map(|bound| bound + 1.0));
    let most = bound("lte").or_else(|| bound("lt").map(|bound| bound - 1.0));
    let value = usual.max(least.unwrap_or(usual)).min(most.unwrap_or(f64::MAX));
    #[expect(clippy::cast_possible_truncation, reason = "integral, and a rule of 32 bits")]
    let number =
        if value.fract() == 0.0 { Some((value as i64).into()) } else { Number::from_f64(value) };
    number.map_or(Value::Null, Value::Number)
}
