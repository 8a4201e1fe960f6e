//! Turns `google.api.http` into the static tables that `gateway-rest` serves, and into `OpenAPI`
//! 3.1.
//!
//! For build scripts: an error in a proto is a panic that names the method or field.

mod binding;
mod descriptor;
mod openapi;
mod routes;
mod shapes;
mod template;

use std::fmt::Display;

use proc_macro2::TokenStream;
use prost_reflect::{DescriptorPool, MessageDescriptor, MethodDescriptor};
use quote::quote;
use serde_json::{Value, json};

/// What depends on the project that uses the library.
#[derive(Clone, Debug)]
pub struct Options {
    /// Full name of the method option with what `google.api.http` lacks, for example
    /// `acme.rest.v1.rest`: a message with any of the fields `status`, `envelope`, `mask`, `clear`, `ok`,
    /// `refusals`, `raw`, `content_type`, `max_age_seconds`, `documents`,
    /// `statuses`, `events`, `body_bytes`, `required`. Empty for none.
    pub rest: String,
    /// Full name of the field option for properties beyond the field's type: a message that may have the fields
    /// `document`, the name of the schema of the JSON text in a bytes field, and `bounds`, which marks a bounding
    /// list. Empty for none.
    pub field: String,
    /// Full name of the field option with validation rules: `buf.validate.field`. Empty for none.
    pub validate: String,
    /// Packages whose services are served and whose messages all get shapes; a name covers the
    /// packages below it.
    pub packages: Vec<String>,
    /// The path of the runtime crate in generated code.
    pub runtime: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rest: String::new(),
            field: String::new(),
            validate: "buf.validate.field".to_owned(),
            packages: Vec::new(),
            runtime: "::gateway_rest".to_owned(),
        }
    }
}

impl Options {
    fn covers(&self, package: &str) -> bool {
        self.packages.iter().any(|own| {
            package
                .strip_prefix(own.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    fn runtime_path(&self) -> TokenStream {
        let path = self.runtime.parse();
        path.unwrap_or_else(|error| panic!("runtime `{}`: {error}", self.runtime))
    }
}

/// Rust source: everything that [`shapes`] writes, and `pub static ROUTES: &[Route]` with one route for
/// each binding of each method of `options.packages`. Include it in a module of its own.
///
/// # Panics
/// If an annotation names a field that does not exist or has the wrong type, if two bindings have the
/// same path and method, or if a message that REST reaches has a 64-bit integer
/// whose rules do not keep it within 53 bits.
pub fn routes(pool: &DescriptorPool, options: &Options) -> String {
    let (shapes, routes) = (shapes::tables(pool, options), routes::table(pool, options));
    formatted(quote!(#shapes #routes))
}

/// An HTTP method and path template of an RPC.
#[derive(Clone, Debug)]
pub struct HttpBinding {
    /// In upper case.
    pub method: String,
    /// As written in the proto.
    pub path: String,
}

/// The HTTP bindings of a method, in the order of its annotation; empty if it has none.
///
/// # Panics
/// As [`routes`] does.
pub fn http_bindings(method: &MethodDescriptor, options: &Options) -> Vec<HttpBinding> {
    let bindings = binding::bindings(method, options).into_iter();
    bindings.map(|binding| HttpBinding { method: binding.method, path: binding.path }).collect()
}

/// Rust source: `pub static SHAPE_<FULL_NAME_WITH_UNDERSCORES>: Shape` for every message of
/// `options.packages` and all they reach, `pub static SHAPES: &[&Shape]` sorted by name, and
/// `pub fn shape(name: &str) -> Option<&'static Shape>` by full protobuf name.
///
/// # Panics
/// If a message has more than 256 fields, or a field of a type without a JSON form here.
pub fn shapes(pool: &DescriptorPool, options: &Options) -> String {
    formatted(shapes::tables(pool, options))
}

/// JSON Schema 2020-12 of a message that the service writes as a document of its own, such as an event:
/// nested messages in place, members required unless they are `optional`, none null, and further ones
/// permitted. The document's JSON is not protobuf's: a 64-bit integer is a number.
///
/// # Panics
/// If the example in the message's comment is not JSON.
pub fn message_schema(message: &MessageDescriptor, options: &Options) -> Value {
    openapi::message_schema(message, options)
}

/// What an `OpenAPI` document contains besides the protos. Start from [`Info::new`].
pub struct Info<'a> {
    pub title: String,
    pub version: String,
    pub description: String,
    /// `OpenAPI` server URLs; may be empty.
    pub servers: Vec<String>,
    /// `OpenAPI` security schemes by name: see [`bearer`].
    pub security_schemes: Vec<(String, Value)>,
    /// Who may call a method at one of its bindings, by the binding's index.
    pub access: &'a dyn Fn(&MethodDescriptor, usize) -> Access,
    /// JSON Schema of every error body; it becomes `#/components/schemas/Error`.
    pub error: Value,
    /// Error statuses of every operation, besides those that follow from its form.
    pub refusals: Vec<u16>,
    /// Further schemas by name: of bodies that no message describes, which a method's option
    /// `documents` names.
    pub documents: Vec<(String, Value)>,
    /// May change a finished operation of this HTTP method: headers, vendor extensions.
    pub amend: &'a dyn Fn(&MethodDescriptor, &str, &mut Value),
}

impl Info<'_> {
    /// No security, `google.rpc.Status` as the error, and 429, 500 and 503 from every operation.
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
            amend: &|_, _, _| {},
        }
    }
}

/// A security scheme `Authorization: Bearer`; the format is a hint such as `JWT`.
pub fn bearer(format: &str, description: &str) -> Value {
    json!({
        "type": "http", "scheme": "bearer", "bearerFormat": format, "description": description,
    })
}

/// The security of one operation.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Any one of these permits the call; if empty, no credential is needed.
    pub alternatives: Vec<Requirement>,
}

/// A credential that permits the call.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// The name of its security scheme.
    pub scheme: String,
    /// Scopes or roles, all of which it must have.
    pub scopes: Vec<String>,
}

/// The `OpenAPI` 3.1 document of the services of `options.packages`.
///
/// # Panics
/// As [`routes`] does.
pub fn openapi(pool: &DescriptorPool, options: &Options, info: &Info<'_>) -> Value {
    openapi::document(pool, options, info)
}

/// A number without a suffix, so that the table's type decides.
fn literal(number: impl Display) -> TokenStream {
    let text = number.to_string();
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn formatted(code: TokenStream) -> String {
    let file = syn::parse2(code).unwrap_or_else(|error| panic!("the tables: {error}"));
    prettyplease::unparse(&file)
}
