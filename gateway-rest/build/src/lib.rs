//! Turns `google.api.http` into the static tables that `gateway-rest` serves, and into `OpenAPI`
//! 3.1.
//!
//! The library is for build scripts: an error in a proto is a panic with the name of the method or
//! field.

mod binding;
mod descriptor;
mod openapi;
mod routes;
mod shapes;
mod template;

use std::{collections::BTreeMap, fmt::Display};

use proc_macro2::TokenStream;
use prost_reflect::{DescriptorPool, MethodDescriptor};
use quote::quote;
use serde_json::{Value, json};

pub use openapi::{document as openapi, message_schema, text as openapi_text};

/// The settings of the project that uses the library.
#[derive(Clone, Debug)]
pub struct Options {
    /// Full name of the method option for properties that `google.api.http` lacks, for example
    /// `acme.rest.v1.rest`: a message with any of the fields `status`, `envelope`, `mask`, `clear`,
    /// `refusals`, `raw`, `content_type`, `max_age_seconds`, `documents`, `statuses`, `events`,
    /// `body_bytes`, `required`, `location`, `states`. Empty for none.
    pub rest: String,
    /// Full name of the field option for properties beyond the field's type: a message with any of
    /// the fields `document` (the name of the schema of the JSON text in a bytes field), `bounds`
    /// (marks a bounding list) and `final` (the values of a state in which the resource cannot
    /// change). Empty for none.
    pub field: String,
    /// Full name of the field option with validation rules: `buf.validate.field`. Empty for none.
    pub validate: String,
    /// Whether the success bodies of a path begin with `"ok": true`. The messages of a stream never
    /// do.
    pub ok: fn(&str) -> bool,
    /// Packages of the services to serve. All messages of these packages get shapes. A name covers
    /// the packages below it.
    pub packages: Vec<String>,
    /// The path of the runtime crate in generated code.
    pub runtime: String,
    /// Examples of fields without an `Example:` in their comment, by `Message.field`, or by the
    /// field's name in all messages. The example null shows the field as absent. By the name of a
    /// method: the example of the method's body, if the body is a text.
    pub examples: BTreeMap<String, Value>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rest: String::new(),
            field: String::new(),
            validate: "buf.validate.field".to_owned(),
            ok: |_| false,
            packages: Vec::new(),
            runtime: "::gateway_rest".to_owned(),
            examples: BTreeMap::new(),
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

/// Returns Rust source: the output of [`shapes`], and `pub static ROUTES: &[Route]` with one route
/// for each binding of each method of `options.packages`. Include it in a module of its own.
///
/// # Panics
/// If an annotation refers to a field that does not exist or has the wrong type, if two bindings
/// have the same path and method, or if a message that REST reaches has a 64-bit integer without
/// rules that keep the integer within 53 bits.
pub fn routes(pool: &DescriptorPool, options: &Options) -> String {
    let (shapes, routes) = (shapes::tables(pool, options), routes::table(pool, options));
    formatted(quote!(#shapes #routes))
}

/// An HTTP method and path template of an RPC.
#[derive(Clone, Debug)]
pub struct HttpBinding {
    /// The HTTP method, in upper case.
    pub method: String,
    /// The template as written in the proto.
    pub path: String,
}

/// Returns the HTTP bindings of a method, in the order of its annotation; empty without one.
///
/// # Panics
/// See [`routes`].
pub fn http_bindings(method: &MethodDescriptor, options: &Options) -> Vec<HttpBinding> {
    let bindings = binding::bindings(method, options).into_iter();
    bindings.map(|binding| HttpBinding { method: binding.method, path: binding.path }).collect()
}

/// Returns Rust source: `pub static SHAPE_<FULL_NAME_WITH_UNDERSCORES>: Shape` for every message of
/// `options.packages` and all that these use, `pub static SHAPES: &[&Shape]` sorted by name, and
/// `pub fn shape(name: &str) -> Option<&'static Shape>` by full protobuf name.
///
/// # Panics
/// If a message has more than 256 fields, or a field of a type without a JSON form in this library.
pub fn shapes(pool: &DescriptorPool, options: &Options) -> String {
    formatted(shapes::tables(pool, options))
}

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

/// Writes a number without a type suffix. The table's field then determines its type.
fn literal(number: impl Display) -> TokenStream {
    let text = number.to_string();
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn formatted(code: TokenStream) -> String {
    let file = syn::parse2(code).unwrap_or_else(|error| panic!("the tables: {error}"));
    prettyplease::unparse(&file)
}
