//! JSON Schema 2020-12 of messages: one schema for requests, one for responses.
//!
//! The schemas differ. A response has every member. A request has only the members that a client
//! may set, and requires few of them. A patch requires none.

use std::collections::{BTreeMap, BTreeSet};

use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, ServiceDescriptor};
use serde_json::{Map, Value, json};

use super::{example, rules};
use crate::{
    Options,
    descriptor::{self, Comment, IMMUTABLE, INPUT_ONLY, NON_EMPTY_DEFAULT, OUTPUT_ONLY},
    shapes,
};

/// The use of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Use {
    Output,
    Input,
    Patch,
}

pub(crate) struct Schemas<'a> {
    pub(crate) options: &'a Options,
    /// Component names by full name of the message.
    names: BTreeMap<String, String>,
    made: BTreeMap<String, Value>,
    /// The schemas that were already started, to stop recursion.
    begun: BTreeSet<(String, Use)>,
}

impl<'a> Schemas<'a> {
    /// Uses short names if they are unique among all messages that REST reaches.
    pub(crate) fn new(services: &[ServiceDescriptor], options: &'a Options) -> Self {
        let mut reached = BTreeMap::new();
        for method in services.iter().flat_map(|service| service.methods().collect::<Vec<_>>()) {
            shapes::reach(&method.input(), &mut reached);
            shapes::reach(&method.output(), &mut reached);
        }
        let mut full: BTreeSet<String> = reached.keys().cloned().collect();
        for field in reached.values().flat_map(descriptor::fields) {
            if let Kind::Enum(kind) = field.kind() {
                full.insert(kind.full_name().to_owned());
            }
        }
        let short = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
        let mut count = BTreeMap::<String, usize>::from([("Error".to_owned(), 1)]);
        for name in &full {
            *count.entry(short(name)).or_default() += 1;
        }
        let names = full.into_iter().map(|name| {
            let unique = count.get(&short(&name)) == Some(&1);
            let chosen = if unique { short(&name) } else { name.clone() };
            (name, chosen)
        });
        let names = names.collect();
        Self { options, names, made: BTreeMap::new(), begun: BTreeSet::new() }
    }

    pub(crate) fn put(&mut self, name: &str, schema: Value) {
        self.made.insert(name.to_owned(), schema);
    }

    /// Returns a reference to a schema with this name, or with a longer name if another schema
    /// already has this name.
    pub(crate) fn named(&mut self, name: &str, schema: Value) -> Value {
        let mut name = name.to_owned();
        let is_other = |name: &String| {
            self.made.get(name).is_some_and(|made| *made != schema)
                || self.names.values().any(|taken| taken == name)
        };
        while is_other(&name) {
            name.push_str("Body");
        }
        let reference = json!({"$ref": format!("#/components/schemas/{name}")});
        self.made.insert(name, schema);
        reference
    }

    pub(crate) fn finish(self) -> Map<String, Value> {
        self.made.into_iter().collect()
    }

    /// Returns a reference to the message's schema, which is added on first use.
    pub(crate) fn message(&mut self, message: &MessageDescriptor, used: Use) -> Value {
        let full = message.full_name().to_owned();
        let name = self.names.get(&full).cloned().unwrap_or_else(|| full.clone());
        let name = match used {
            Use::Output => name,
            Use::Input => name + "Input",
            Use::Patch => name + "Patch",
        };
        if self.begun.insert((full, used)) {
            let schema = self.object(message, used, &[]);
            self.made.insert(name.clone(), schema);
        }
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    /// Returns the message's schema itself, without some members.
    pub(crate) fn object(
        &mut self,
        message: &MessageDescriptor,
        used: Use,
        without: &[&str],
    ) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for field in descriptor::fields(message) {
            let given = is_given(&field, used) && !without.contains(&field.name());
            if !given {
                continue;
            }
            let must = match used {
                Use::Output => true,
                Use::Input => descriptor::is_required(&field, self.options),
                Use::Patch => false,
            };
            if must {
                required.push(field.name().to_owned());
            }
            properties.insert(field.name().to_owned(), self.member(&field, used));
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        if used != Use::Output {
            schema["additionalProperties"] = false.into();
        }
        let comment = Comment::of_message(message);
        if !comment.text.is_empty() {
            schema["description"] = comment.text.into();
        }
        schema
    }

    /// Returns the schema of an object's member: its type, rules, nullability and comment.
    fn member(&mut self, field: &FieldDescriptor, used: Use) -> Value {
        let mut schema = self.field(field, used);
        if may_be_null(field, used, self.options) {
            nullable(&mut schema);
        }
        if used == Use::Output && descriptor::behaves(field, OUTPUT_ONLY) {
            schema["readOnly"] = true.into();
        }
        if descriptor::behaves(field, INPUT_ONLY) {
            schema["writeOnly"] = true.into();
        }
        let finals = descriptor::finals(field, self.options);
        if !finals.is_empty() {
            schema["x-final"] = finals.into();
        }
        let comment = Comment::of_field(field);
        if !comment.text.is_empty() {
            schema["description"] = comment.text.into();
        }
        if let Some(example) = comment.example {
            schema["examples"] = json!([example::parsed(&example, field)]);
        }
        schema
    }

    /// Returns a field's type with its rules, regardless of absence.
    pub(crate) fn field(&mut self, field: &FieldDescriptor, used: Use) -> Value {
        let rules = descriptor::rules(field, self.options);
        let inner = if used == Use::Patch { Use::Input } else { used };
        if field.is_map() {
            let entry = field.kind();
            let value = entry.as_message().map(MessageDescriptor::map_entry_value_field);
            let value = value.map(|value| self.single(&value.kind(), inner));
            return json!({"type": "object", "additionalProperties": value});
        }
        if field.is_list() {
            let repeated = rules.as_ref().and_then(|rules| descriptor::inner(rules, "repeated"));
            let mut items = self.value(field, inner);
            let item_rules = repeated.as_ref().and_then(|rules| descriptor::inner(rules, "items"));
            if let Some(rules) = item_rules {
                rules::apply(&mut items, &rules);
            }
            let mut schema = json!({"type": "array", "items": items});
            if let Some(rules) = repeated {
                rules::copy(
                    &mut schema,
                    &rules,
                    &[("min_items", "minItems"), ("max_items", "maxItems")],
                );
                if descriptor::flag(&rules, "unique") {
                    schema["uniqueItems"] = true.into();
                }
            }
            if descriptor::bounds(field, self.options) {
                schema["minItems"] = 1.into();
            }
            return schema;
        }
        let mut schema = self.value(field, inner);
        if let Some(rules) = rules {
            rules::apply(&mut schema, &rules);
            if used == Use::Output && self.may_be_unset(field) {
                rules::allow_default(&mut schema);
            }
            let filled = used != Use::Output && descriptor::flag(&rules, "required");
            if filled && field.kind() == Kind::String && schema.get("minLength").is_none() {
                // Required text must not be empty: an empty text would count as absent.
                schema["minLength"] = 1.into();
            }
        }
        schema
    }

    /// Returns whether a response may contain the type's default although the rules of a request
    /// refuse it. The rules do not apply to members that a client leaves out.
    fn may_be_unset(&self, field: &FieldDescriptor) -> bool {
        !descriptor::is_nullable(field)
            && !descriptor::is_required(field, self.options)
            && !descriptor::behaves(field, OUTPUT_ONLY)
    }

    /// Returns the schema of a single value of the field.
    fn value(&mut self, field: &FieldDescriptor, used: Use) -> Value {
        match descriptor::document(field, self.options) {
            Some(name) => json!({"$ref": format!("#/components/schemas/{name}")}),
            None if descriptor::is_narrow(field, self.options) => json!({"type": "integer"}),
            None => self.single(&field.kind(), used),
        }
    }

    fn single(&mut self, kind: &Kind, used: Use) -> Value {
        match kind {
            Kind::Bool => json!({"type": "boolean"}),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
                json!({"type": "integer", "format": "int32"})
            }
            Kind::Uint32 | Kind::Fixed32 => {
                json!({"type": "integer", "minimum": 0, "maximum": u32::MAX})
            }
            Kind::Float => json!({"type": "number", "format": "float"}),
            Kind::Double => json!({"type": "number", "format": "double"}),
            Kind::String => json!({"type": "string"}),
            Kind::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
            Kind::Enum(kind) => self.words(kind),
            Kind::Message(message) => self.held(message, used),
            // The route tables refuse this kind. The case matters when only the document is built.
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
                json!({"type": "string", "format": "int64"})
            }
            Kind::Uint64 | Kind::Fixed64 => json!({"type": "string", "format": "uint64"}),
        }
    }

    fn held(&mut self, message: &MessageDescriptor, used: Use) -> Value {
        let name = message.full_name();
        if let Some(inner) = descriptor::wrapped(name) {
            return self.single(&inner, used);
        }
        match name.strip_prefix("google.protobuf.") {
            Some("Timestamp") => json!({"type": "string", "format": "date-time"}),
            Some("Duration") => json!({
                "type": "string", "pattern": "^-?[0-9]+([.][0-9]{1,9})?s$",
                "description": "Seconds, as `1.5s`.",
            }),
            Some("FieldMask") => json!({
                "type": "string", "description": "Comma-separated names of members.",
            }),
            Some("Struct") => json!({"type": "object", "additionalProperties": true}),
            Some("Value") => json!({}),
            Some("ListValue") => json!({"type": "array", "items": {}}),
            _ => self.message(message, used),
        }
    }

    fn words(&mut self, kind: &EnumDescriptor) -> Value {
        let name = self.names.get(kind.full_name()).cloned();
        let name = name.unwrap_or_else(|| kind.full_name().to_owned());
        if !self.made.contains_key(&name) {
            let words: Vec<_> = descriptor::words(kind).into_iter().map(|(_, word)| word).collect();
            let mut schema = json!({"type": "string", "enum": words});
            let comment = Comment::of_enum(kind);
            if !comment.text.is_empty() {
                schema["description"] = comment.text.into();
            }
            self.made.insert(name.clone(), schema);
        }
        json!({"$ref": format!("#/components/schemas/{name}")})
    }
}

/// Returns whether the member occurs: a client may set it, or the service returns it.
pub(crate) fn is_given(field: &FieldDescriptor, used: Use) -> bool {
    match used {
        Use::Output => true,
        Use::Input => !descriptor::behaves(field, OUTPUT_ONLY),
        Use::Patch => {
            !descriptor::behaves(field, OUTPUT_ONLY) && !descriptor::behaves(field, IMMUTABLE)
        }
    }
}

/// Returns whether the member may be null. In requests and responses, null means absence.
pub(super) fn may_be_null(field: &FieldDescriptor, used: Use, options: &Options) -> bool {
    let filled = descriptor::behaves(field, NON_EMPTY_DEFAULT);
    match used {
        Use::Output => {
            // Messages and enums without `optional` are always set: the service must ensure
            // this.
            let is_optional = field.containing_oneof().is_some();
            let unbounded = descriptor::bounds(field, options);
            (descriptor::is_nullable(field) && is_optional && !filled) || unbounded
        }
        Use::Input => !descriptor::is_required(field, options),
        // Null clears a member that may be absent.
        Use::Patch => !descriptor::is_required(field, options) && !filled,
    }
}

/// Makes a schema accept null.
fn nullable(schema: &mut Value) {
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    if let Some(kind) = schema.get("type").cloned() {
        schema["type"] = json!([kind, "null"]);
    } else if schema.get("$ref").is_some() {
        *schema = json!({"anyOf": [schema.clone(), {"type": "null"}]});
    }
}
