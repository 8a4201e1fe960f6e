//! Parameters of the path and of the query.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Value, json};

use super::{
    example,
    schema::{Schemas, Use},
};
use crate::{
    Options,
    binding::{self, Binding},
    descriptor::{self, Comment},
};

/// The maximum nesting of messages that the runtime follows in a query.
const DEPTH: usize = 8;

/// Returns a parameter for each wildcard of the path. `names` are the names in the document's path.
pub(super) fn of_path(
    binding: &Binding,
    input: &MessageDescriptor,
    names: &[String],
    schemas: &mut Schemas<'_>,
) -> Vec<Value> {
    let own = binding.template.parameters();
    let parameters = own.into_iter().zip(names).map(|((_, variable), name)| {
        let whole = variable.filter(|variable| variable.to - variable.from == 1);
        let field = whole.and_then(|variable| binding::resolve(input, &variable.path));
        let mut parameter = json!({"name": name, "in": "path", "required": true});
        let Some(field) = field else {
            parameter["schema"] = json!({"type": "string"});
            return parameter;
        };
        parameter["schema"] = schemas.field(&field, Use::Input);
        describe(&mut parameter, &field, schemas.options);
        parameter
    });
    parameters.collect()
}

/// Adds the description and the example. Only required parameters have the project's examples:
/// optional ones could exclude one another.
fn describe(parameter: &mut Value, field: &FieldDescriptor, options: &Options) {
    let comment = Comment::of_field(field);
    if !comment.text.is_empty() {
        parameter["description"] = comment.text.into();
    }
    let written = comment.example.map(|written| example::parsed(&written, field));
    let given = || example::given(field, options).filter(|_| parameter["required"] == true);
    if let Some(example) = written.or_else(given) {
        parameter["example"] = example;
    }
}

/// Returns parameters for the fields that are neither in the path nor in the body.
pub(super) fn of_query(
    binding: &Binding,
    input: &MessageDescriptor,
    masks: [&str; 2],
    schemas: &mut Schemas<'_>,
) -> Vec<Value> {
    let mut query = Query { binding, masks, schemas, found: Vec::new(), within: Vec::new() };
    if binding.body != "*" {
        query.message(input, "", true);
    }
    query.found
}

struct Query<'a, 'b> {
    binding: &'a Binding,
    /// The members of the request that are filled from the keys of the body.
    masks: [&'a str; 2],
    schemas: &'a mut Schemas<'b>,
    found: Vec<Value>,
    /// The enclosing messages, to detect recursion.
    within: Vec<String>,
}

impl Query<'_, '_> {
    fn message(&mut self, message: &MessageDescriptor, prefix: &str, required: bool) {
        if self.within.len() >= DEPTH || self.within.iter().any(|own| own == message.full_name()) {
            return;
        }
        self.within.push(message.full_name().to_owned());
        for field in descriptor::fields(message) {
            let name = format!("{prefix}{}", field.name());
            let top = prefix.is_empty();
            let by_path = self.binding.template.variables.iter().any(|v| v.path == name);
            let taken = top && (name == self.binding.body || self.masks.contains(&name.as_str()));
            if by_path || taken || field.is_map() {
                continue;
            }
            match (descriptor::plain_message(&field.kind()), field.kind()) {
                (Some(inner), _) if !field.is_list() => {
                    self.message(&inner, &format!("{name}."), false);
                    continue;
                }
                (Some(_), _) => continue,
                (None, Kind::Message(special)) if is_free(&special) => continue,
                _ => {}
            }
            let must = required && descriptor::is_required(&field, self.schemas.options);
            let schema = self.schemas.field(&field, Use::Input);
            let mut parameter =
                json!({"name": name, "in": "query", "required": must, "schema": schema});
            describe(&mut parameter, &field, self.schemas.options);
            self.found.push(parameter);
        }
        self.within.pop();
    }
}

/// Returns whether the message has no form in a URL.
fn is_free(message: &MessageDescriptor) -> bool {
    matches!(
        message.full_name(),
        "google.protobuf.Struct" | "google.protobuf.Value" | "google.protobuf.ListValue"
    )
}
