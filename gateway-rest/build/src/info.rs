//! The parts of an `OpenAPI` document that the protos lack.

use prost_reflect::MethodDescriptor;
use serde_json::{Value, json};

/// The parts of an `OpenAPI` document that the protos lack. Start from [`Info::new`].
pub struct Info<'a> {
    pub title: String,
    pub version: String,
    pub description: String,
    /// `OpenAPI` server URLs; may be empty.
    pub servers: Vec<String>,
    /// `OpenAPI` security schemes by name: see [`bearer`].
    pub security_schemes: Vec<(String, Value)>,
    /// Returns the access rule of a method's binding, from the binding's index.
    pub access: &'a dyn Fn(&MethodDescriptor, usize) -> Access,
    /// JSON Schema of every error body; it becomes `#/components/schemas/Error`.
    pub error: Value,
    /// Error statuses of every operation, in addition to the statuses that follow from an
    /// operation's form.
    pub refusals: Vec<u16>,
    /// Further schemas by name, for bodies that are not messages. A method's option `documents`
    /// refers to them.
    pub documents: Vec<(String, Value)>,
    /// Returns an operation's id, from a method, the index of its binding and the binding's path.
    /// Ids should be stable: generated clients use them as names.
    pub operation_id: &'a dyn Fn(&MethodDescriptor, usize, &str) -> String,
    /// The tags that come first; the others follow in the order of the services.
    pub first_tags: &'a [&'a str],
    /// Can change a finished operation, for example its headers or vendor extensions. The second
    /// argument is the HTTP method.
    pub amend: &'a dyn Fn(&MethodDescriptor, &str, &mut Value),
}

impl Info<'_> {
    /// Creates an `Info` without security, with `google.rpc.Status` as the error, and with 429, 500
    /// and 503 for every operation.
    pub fn new(title: &str, version: &str) -> Self {
        Self {
            title: title.to_owned(),
            version: version.to_owned(),
            description: String::new(),
            servers: Vec::new(),
            security_schemes: Vec::new(),
            access: &|_, _| Access::default(),
            error: json!({
                "type": "object",
                "description": "google.rpc.Status.",
                "required": ["code", "message", "details"],
                "properties": {
                    "code": {"type": "integer", "description": "google.rpc.Code."},
                    "message": {"type": "string"},
                    "details": {"type": "array", "items": {"type": "object"}},
                },
            }),
            refusals: vec![429, 500, 503],
            documents: Vec::new(),
            operation_id: &|method, place, _| {
                let id = format!("{}_{}", method.parent_service().name(), method.name());
                if place == 0 { id } else { format!("{id}_{}", place + 1) }
            },
            first_tags: &[],
            amend: &|_, _, _| {},
        }
    }
}

/// Returns a security scheme `Authorization: Bearer`; the format is a hint such as `JWT`.
pub fn bearer(format: &str, description: &str) -> Value {
    json!({
        "type": "http", "scheme": "bearer", "bearerFormat": format, "description": description,
    })
}

/// The security of one operation.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Alternatives, each of which permits the call. Empty: the call needs no credential.
    pub alternatives: Vec<Requirement>,
}

/// A credential that permits the call.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// The name of its security scheme.
    pub scheme: String,
    /// Scopes or roles. The credential must have all of them.
    pub scopes: Vec<String>,
}
