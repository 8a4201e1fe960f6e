//! `OpenAPI` 3.1 of the services, with JSON Schema 2020-12 from their messages.

mod addresses;
mod enums;
mod example;
mod message;
mod operation;
mod parameters;
mod pattern;
mod rules;
mod schema;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use prost_reflect::{DescriptorPool, ServiceDescriptor};
use serde_json::{Map, Value, json};

use crate::{
    Info, Options, binding,
    descriptor::{self, Comment},
};
pub use message::schema as message_schema;
use operation::Operation;
use schema::Schemas;
pub use text::text;

/// Returns the `OpenAPI` 3.1 document of the services of `options.packages`.
///
/// # Panics
/// See [`crate::routes`].
pub fn document(pool: &DescriptorPool, options: &Options, info: &Info<'_>) -> Value {
    let services = descriptor::services(pool, options);
    let readable = binding::readable(&services, options);
    let mut schemas = Schemas::new(&services, options);
    schemas.put("Error", info.error.clone());
    for (name, schema) in &info.documents {
        schemas.put(name, schema.clone());
    }
    let mut paths = BTreeMap::<String, Path>::new();
    let (mut tags, mut statuses) = (Vec::new(), BTreeSet::new());
    for service in &services {
        let mut has_rest = false;
        for method in service.methods() {
            for (place, binding) in binding::bindings(&method, options).iter().enumerate() {
                has_rest = true;
                // `/x/{id}` and `/x/{x.id}` are the same path. The parameter names of the first one
                // are used.
                let path = paths.entry(binding.template.shape()).or_insert_with(|| Path {
                    written: binding.template.openapi(),
                    names: binding.template.parameters().into_iter().map(|(n, _)| n).collect(),
                    operations: Map::new(),
                });
                let has_location = binding.has_location(&readable);
                let operation =
                    Operation { method: &method, binding, place, has_location, options, info };
                let (value, refusals) = operation.describe(&path.names, &mut schemas);
                statuses.extend(refusals);
                path.add(&binding.method, value);
            }
        }
        if has_rest {
            tags.push(tag(service));
        }
    }
    // The sort is stable: all other tags keep their order.
    let first = |tag: &Value| info.first_tags.iter().position(|first| tag["name"] == *first);
    tags.sort_by_key(|tag| first(tag).unwrap_or(usize::MAX));
    let mut paths: Map<_, _> =
        paths.into_values().map(|path| (path.written, path.operations.into())).collect();
    addresses::complete(&mut paths);
    let responses: Map<_, _> =
        statuses.into_iter().map(|status| (status.to_string(), refusal(status))).collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {"title": info.title, "version": info.version},
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas.finish(),
            "responses": responses,
            "securitySchemes": info.security_schemes.iter().cloned().collect::<Map<_, _>>(),
        },
    });
    if !info.description.is_empty() {
        document["info"]["description"] = info.description.clone().into();
    }
    if !info.servers.is_empty() {
        document["servers"] = info.servers.iter().map(|url| json!({"url": url})).collect();
    }
    enums::name(&mut document);
    document
}

struct Path {
    written: String,
    /// The names of its parameters, in order.
    names: Vec<String>,
    operations: Map<String, Value>,
}

impl Path {
    /// `OpenAPI` 3.1 defines these seven methods and HEAD, which no operation has. Other methods go
    /// into an extension.
    fn add(&mut self, method: &str, operation: Value) {
        let known = ["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE"];
        let place = if known.contains(&method) { "" } else { "x-" };
        let method = format!("{place}{}", method.to_lowercase());
        self.operations.insert(method, operation);
    }
}

/// Returns the tag of a service, with the service's comment: `DelegationService` is `Delegation`.
fn tag(service: &ServiceDescriptor) -> Value {
    let mut tag = json!({"name": tag_name(service)});
    let comment = Comment::of_service(service);
    if !comment.text.is_empty() {
        tag["description"] = comment.text.into();
    }
    tag
}

fn tag_name(service: &ServiceDescriptor) -> String {
    let name = service.name().strip_suffix("Service").filter(|name| !name.is_empty());
    name.unwrap_or(service.name()).to_owned()
}

fn refusal(status: u16) -> Value {
    let description = match status {
        400 => "The request is invalid; the body lists each invalid field.",
        401 => "The credential is missing or invalid.",
        403 => "The credential does not allow this.",
        404 => "Not found, or not visible to this caller.",
        405 => "The record does not support this method; see Allow.",
        409 => "The state of the record, or another record, conflicts with the request.",
        412 => "A precondition failed.",
        413 => "The body is too large.",
        415 => "The Content-Type is not JSON.",
        422 => "The Idempotency-Key was used before with another body.",
        429 => "Too many requests; wait for the time in Retry-After.",
        500 => "Internal error.",
        503 => "The service cannot answer now; retry.",
        _ => "Refused.",
    };
    let mut response = json!({
        "description": description,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/Error"}},
        },
    });
    let header = match status {
        401 => ("WWW-Authenticate", "How to authenticate.", json!({"type": "string"})),
        405 => ("Allow", "The supported methods.", json!({"type": "string"})),
        429 | 503 => ("Retry-After", "Seconds to wait.", json!({"type": "integer", "minimum": 0})),
        _ => return response,
    };
    let (name, description, schema) = header;
    response["headers"] = json!({name: {"description": description, "schema": schema}});
    response
}
