//! One operation: parameters, body, success, errors, security.

use std::collections::BTreeSet;

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};
use serde_json::{Map, Value, json};

use super::{
    example, parameters,
    schema::{Schemas, Use},
    tag_name,
};
use crate::{
    Access, Info, Options,
    binding::{Binding, Rest, field},
    descriptor::{self, Comment},
};

pub(super) struct Operation<'a> {
    pub(super) method: &'a MethodDescriptor,
    pub(super) binding: &'a Binding,
    /// The operation's index among the method's bindings.
    pub(super) place: usize,
    /// Whether a new record can be read below the path.
    pub(super) has_location: bool,
    pub(super) options: &'a Options,
    pub(super) info: &'a Info<'a>,
}

impl Operation<'_> {
    /// Returns the operation and its error statuses.
    pub(super) fn describe(
        &self,
        names: &[String],
        schemas: &mut Schemas<'_>,
    ) -> (Value, BTreeSet<u16>) {
        let rest = Rest::of(self.method, self.options);
        let access = (self.info.access)(self.method, self.place);
        let service = self.method.parent_service();
        let id = (self.info.operation_id)(self.method, self.place, &self.binding.path);
        let mut operation = json!({"operationId": id, "tags": [tag_name(service)]});
        let comment = Comment::of_method(self.method);
        operation["summary"] = match comment.first_sentence() {
            "" => spaced(self.method.name()).into(),
            sentence => sentence.into(),
        };
        if comment.text.trim_end_matches('.') != comment.first_sentence() {
            operation["description"] = comment.text.clone().into();
        }
        let input = self.method.input();
        let mut parameters = parameters::of_path(self.binding, &input, names, schemas);
        let masks = [rest.mask.as_str(), &rest.clear];
        parameters.extend(parameters::of_query(self.binding, &input, masks, schemas));
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if let Some(body) = self.request_body(schemas) {
            operation["requestBody"] = body;
        }
        let refusals = self.refusals(&rest, &access);
        let mut responses = Map::new();
        let success = self.success(&rest, schemas);
        for status in &rest.statuses {
            let mut same = success.clone();
            same["description"] =
                format!("The same body as {}, for another outcome.", rest.status).into();
            responses.insert(status.to_string(), same);
        }
        responses.insert(rest.status.to_string(), success);
        for status in &refusals {
            let response = json!({"$ref": format!("#/components/responses/{status}")});
            responses.insert(status.to_string(), response);
        }
        operation["responses"] = responses.into();
        // A credential must satisfy any single requirement, with all scopes of that requirement.
        let security = access.alternatives.iter();
        let security = security.map(|one| json!({one.scheme.as_str(): one.scopes}));
        operation["security"] = security.collect();
        if !rest.states.is_empty() {
            operation["x-states"] = rest.states.into();
        }
        (self.info.amend)(self.method, &self.binding.method, &mut operation);
        (operation, refusals)
    }

    fn refusals(&self, rest: &Rest, access: &Access) -> BTreeSet<u16> {
        let mut refusals: BTreeSet<u16> =
            self.info.refusals.iter().chain(&rest.refusals).copied().collect();
        refusals.insert(400);
        if !access.alternatives.is_empty() {
            refusals.extend([401, 403]);
        }
        if !self.binding.template.variables.is_empty() {
            refusals.insert(404);
        }
        if !self.binding.body.is_empty() {
            refusals.extend([413, 415]);
        }
        refusals
    }

    fn request_body(&self, schemas: &mut Schemas<'_>) -> Option<Value> {
        let rest = Rest::of(self.method, self.options);
        // With a mask, the body is a partial record, for any HTTP method.
        let part = self.binding.method == "PATCH" || !rest.mask.is_empty();
        let used = if part { Use::Patch } else { Use::Input };
        let input = self.method.input();
        let (schema, example, required) = match self.binding.body.as_str() {
            "" => return None,
            "*" => {
                let by_path: Vec<_> =
                    self.binding.template.variables.iter().map(|v| v.path.as_str()).collect();
                let schema = if by_path.is_empty() {
                    schemas.message(&input, used)
                } else {
                    schemas.object(&input, used, &by_path)
                };
                let example = example::message(&input, used, schemas.options, &by_path);
                let fields = descriptor::fields(&input);
                let mut others = fields.iter().filter(|f| !by_path.contains(&f.name()));
                let must = others.any(|field| descriptor::is_required(field, self.options));
                (schema, Some(example), must)
            }
            name => {
                let body = field(&input, name, self.method.full_name(), "body");
                let mut schema = match descriptor::plain_message(&body.kind()) {
                    Some(message) if !body.is_list() && !body.is_map() => {
                        for name in &rest.required {
                            field(&message, name, self.method.full_name(), "required");
                        }
                        schemas.message(&message, used)
                    }
                    _ => schemas.field(&body, used),
                };
                if !rest.required.is_empty() {
                    schema["required"] = json!(rest.required);
                }
                (schema, example::field(&body, used, schemas.options), true)
            }
        };
        let mut content = json!({"schema": schema});
        // An operation that is always refused has no example.
        let refused = rest.refusals.contains(&405);
        if let Some(example) = example.filter(|_| !refused) {
            content["example"] = example;
        }
        Some(json!({"required": required, "content": {"application/json": content}}))
    }

    fn success(&self, rest: &Rest, schemas: &mut Schemas<'_>) -> Value {
        let mut response = json!({"description": "Success."});
        if rest.status == 201 && self.has_location {
            let description = "The URL of the new record.";
            response["headers"] = json!({
                "Location": {"description": description, "schema": {"type": "string"}},
            });
        }
        if rest.status == 204 {
            return response;
        }
        let output = self.method.output();
        if !rest.raw.is_empty() {
            let raw = field(&output, &rest.raw, self.method.full_name(), "raw");
            let schema = match &rest.documents[..] {
                [] => schemas.field(&raw, Use::Output),
                [one] => self.document(one),
                all => {
                    json!({"oneOf": all.iter().map(|name| self.document(name)).collect::<Vec<_>>()})
                }
            };
            let mut content = json!({"schema": schema});
            let mut example = self.raw_example(rest);
            if self.binding.ok {
                content["schema"] = self.enveloped(&rest.envelope, &content["schema"], schemas);
                example = example.map(|raw| json!({"ok": true, rest.envelope.as_str(): raw}));
            }
            if let Some(example) = example {
                content["example"] = example;
            }
            let kind = Some(rest.content_type.as_str()).filter(|kind| !kind.is_empty());
            response["content"] = json!({kind.unwrap_or("application/json"): content});
            return response;
        }
        let (schema, example) = self.content(rest, schemas);
        let mut content = json!({"schema": schema});
        if let Some(example) = example {
            content["example"] = example;
        }
        if self.method.is_server_streaming() {
            let events = self.events(rest, &content["schema"], schemas);
            response["content"] = json!({
                "text/event-stream": {"schema": events}, "application/x-ndjson": content,
            });
            if !rest.csv.is_empty() {
                response["content"]["text/csv"] = json!({"schema": rows(&rest.csv)});
            }
            return response;
        }
        response["content"] = json!({"application/json": content});
        response
    }

    /// Returns the schema of one server-sent event of a stream, from the schema of its messages. It
    /// has the form of `itemSchema` in OpenAPI 3.2.
    fn events(&self, rest: &Rest, message: &Value, schemas: &mut Schemas<'_>) -> Value {
        let output = self.method.output();
        let named = |name: &str| field(&output, name, self.method.full_name(), "events");
        let (data, id) = match &rest.events {
            Some(events) => {
                let id = named(&events.id).name().to_owned();
                (schemas.field(&named(&events.data), Use::Output), Some(id))
            }
            None => (message.clone(), None),
        };
        let mut properties = json!({
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": data,
                "description": "JSON text. An event without it only advances the id.",
            },
            "event": {
                "const": "error",
                "description": "Only in the last event of a failed stream; its data is an Error.",
            },
        });
        let mut required = Vec::new();
        if let Some(id) = id {
            let description = format!("`{id}` of the message.");
            properties["id"] = json!({"type": "string", "description": description});
        } else {
            properties["data"]["description"] = "JSON text.".into();
            required.push("data");
        }
        let schema = json!({
            "type": "object",
            "description": "One server-sent event (WHATWG HTML, 9.2).",
            "required": required,
            "properties": properties,
        });
        schemas.named(&format!("{}ServerSentEvent", output.name()), schema)
    }

    /// Returns the example of a body that is not a message. It is the example in the schema of the
    /// body's document; for a text, the project's example for the method.
    fn raw_example(&self, rest: &Rest) -> Option<Value> {
        let Some(name) = rest.documents.first() else {
            return self.options.examples.get(self.method.name()).cloned();
        };
        let (_, schema) = self.info.documents.iter().find(|(document, _)| document == name)?;
        schema["examples"].get(0).cloned()
    }

    fn document(&self, name: &str) -> Value {
        let known = self.info.documents.iter().any(|(document, _)| document == name);
        assert!(known, "{}: no document `{name}`", self.method.full_name());
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    /// Returns the schema and the example of a success body that is JSON.
    fn content(&self, rest: &Rest, schemas: &mut Schemas<'_>) -> (Value, Option<Value>) {
        let output = self.method.output();
        let part = (!self.binding.response_body.is_empty()).then(|| {
            field(&output, &self.binding.response_body, self.method.full_name(), "response_body")
        });
        if self.binding.ok && rest.envelope.is_empty() {
            let mut schema = schemas.object(&output, Use::Output, &[]);
            let members = schema["properties"].take();
            let mut properties = Map::from_iter([("ok".to_owned(), ok())]);
            properties.extend(members.as_object().cloned().unwrap_or_default());
            let required: Vec<_> = properties.keys().cloned().collect();
            schema["properties"] = properties.into();
            schema["required"] = required.into();
            let mut example = json!({"ok": true});
            merge(&mut example, example::message(&output, Use::Output, schemas.options, &[]));
            let name = answer_name(&output);
            return (schemas.named(&name, schema), Some(example));
        }
        let (schema, example) = match &part {
            Some(part) => self.part(part, schemas),
            None => (
                schemas.message(&output, Use::Output),
                Some(example::message(&output, Use::Output, schemas.options, &[])),
            ),
        };
        let envelope = rest.envelope.as_str();
        if envelope.is_empty() {
            return (schema, example);
        }
        let example = if self.binding.ok {
            json!({"ok": true, envelope: example})
        } else {
            json!({envelope: example})
        };
        (self.enveloped(envelope, &schema, schemas), Some(example))
    }

    /// Returns the schema of a body that contains the response in a member.
    fn enveloped(&self, envelope: &str, schema: &Value, schemas: &mut Schemas<'_>) -> Value {
        let output = self.method.output();
        if self.binding.ok {
            let schema = json!({
                "type": "object",
                "required": ["ok", envelope],
                "properties": {"ok": ok(), envelope: schema},
            });
            return schemas.named(&format!("{}Answer", output.name()), schema);
        }
        let schema = json!({
            "type": "object", "required": [envelope], "properties": {envelope: schema},
        });
        schemas.named(&format!("{}Envelope", output.name()), schema)
    }

    fn part(&self, part: &FieldDescriptor, schemas: &mut Schemas<'_>) -> (Value, Option<Value>) {
        let schema = schemas.field(part, Use::Output);
        (schema, example::field(part, Use::Output, self.options))
    }
}

/// Returns the name of a response's schema: `PrincipalPage` for a page of principals,
/// `DeletePrincipalAnswer` for `DeletePrincipalResponse`.
fn answer_name(output: &MessageDescriptor) -> String {
    let item = descriptor::fields(output).into_iter().find_map(|field| match field.kind() {
        Kind::Message(item) if field.is_list() => Some(item),
        _ => None,
    });
    let is_page = output.get_field_by_name("next_page_token").is_some();
    match item.filter(|_| is_page) {
        Some(item) => format!("{}Page", item.name()),
        None => {
            format!("{}Answer", output.name().strip_suffix("Response").unwrap_or(output.name()))
        }
    }
}

fn ok() -> Value {
    json!({"type": "boolean", "description": "Always true here."})
}

/// Returns the schema of a stream as CSV.
fn rows(columns: &[String]) -> Value {
    let names = columns.iter().map(|path| path.rsplit('.').next().unwrap_or(path));
    let names: Vec<_> = names.collect();
    let description = format!(
        "Rows of RFC 4180. The first row has the names of the columns: {}. An apostrophe stands \
         before a text that a spreadsheet would take for a formula.",
        names.join(", ")
    );
    json!({"type": "string", "description": description})
}

fn merge(into: &mut Value, from: Value) {
    if let (Some(into), Value::Object(from)) = (into.as_object_mut(), from) {
        into.extend(from);
    }
}

/// Splits a name into words: `BatchEvaluate` is `Batch evaluate`.
fn spaced(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push(' ');
            out.extend(letter.to_lowercase());
        } else {
            out.push(letter);
        }
    }
    out
}
