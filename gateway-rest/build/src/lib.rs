//! Turns `google.api.http` into the static tables that `gateway-rest` serves, and into `OpenAPI`
//! 3.1.
//!
//! For build scripts: what is wrong in a proto is a panic that names the method or field.

mod binding;
mod descriptor;
mod openapi;
mod routes;
mod shapes;
mod template;

use prost_reflect::{DescriptorPool, MethodDescriptor};
use serde_json::{Value, json};

/// What the library is not to know by itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// Full name of the method option that says what `google.api.http` does not, for example
    /// `acme.rest.v1.rest`: a message with any of the fields `status`, `envelope`, `mask`, `ok`,
    /// `refusals`, `raw`, `content_type`, `max_age_seconds`, `documents`. Empty: none.
    pub rest: String,
    /// Full name of the field option with validation rules: `buf.validate.field`. Empty: none.
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
}

/// Rust source: all that [`shapes`] gives, and `pub static ROUTES: &[Route]`, one for each
/// binding of each method of `options.packages`. To be included in a module of its own.
///
/// # Panics
/// When an annotation names a field that is not there or does not fit, when two bindings are the
/// same path and method, and when a message that REST reaches has a 64-bit integer.
pub fn routes(pool: &DescriptorPool, options: &Options) -> String {
    shapes(pool, options) + &routes::source(pool, options)
}

/// An HTTP method and path template of an RPC.
#[derive(Clone, Debug)]
pub struct HttpBinding {
    /// In capitals.
    pub method: String,
    /// As the proto has it.
    pub path: String,
}

/// The HTTP bindings of a method, in the order of its annotation; none where it has none.
///
/// # Panics
/// Where [`routes`] does.
pub fn http_bindings(method: &MethodDescriptor, options: &Options) -> Vec<HttpBinding> {
    let bindings = binding::bindings(method, options).into_iter();
    bindings.map(|binding| HttpBinding { method: binding.method, path: binding.path }).collect()
}

/// Rust source: `pub static SHAPE_<FULL_NAME_WITH_UNDERSCORES>: Shape` for every message of
/// `options.packages` and all they reach, `pub static SHAPES: &[&Shape]` sorted by name, and
/// `pub fn shape(name: &str) -> Option<&'static Shape>` by full protobuf name.
///
/// # Panics
/// When a message has more than 256 fields or a field of a type that has no JSON form here.
pub fn shapes(pool: &DescriptorPool, options: &Options) -> String {
    shapes::source(pool, options)
}

/// What an `OpenAPI` document says beside the protos. Start from [`Info::new`].
pub struct Info<'a> {
    pub title: String,
    pub version: String,
    pub description: String,
    /// `OpenAPI` server URLs; may be empty.
    pub servers: Vec<String>,
    /// Security schemes by name, as `OpenAPI` has them: see [`bearer`].
    pub security_schemes: Vec<(String, Value)>,
    /// Who may call a method at one of its bindings, by its place among them.
    pub access: &'a dyn Fn(&MethodDescriptor, usize) -> Access,
    /// JSON Schema of every refusal's body; it becomes `#/components/schemas/Error`.
    pub error: Value,
    /// Statuses that every operation may refuse with, beside those found from its form.
    pub refusals: Vec<u16>,
    /// Further schemas by name: of bodies that no message describes, which a method's option
    /// `documents` names.
    pub documents: Vec<(String, Value)>,
    /// May change a finished operation of this HTTP method: headers, vendor extensions.
    pub amend: &'a dyn Fn(&MethodDescriptor, &str, &mut Value),
}

impl Info<'_> {
    /// No security, `google.rpc.Status` for refusals, and 429, 500 and 503 from everywhere.
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
    /// Any one of these opens the operation; none: no credential is needed.
    pub alternatives: Vec<Requirement>,
}

/// A credential that opens an operation.
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
/// Where [`routes`] does.
pub fn openapi(pool: &DescriptorPool, options: &Options, info: &Info<'_>) -> Value {
    openapi::document(pool, options, info)
}
