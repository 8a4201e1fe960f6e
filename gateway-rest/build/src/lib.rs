//! Turns `google.api.http` into the static tables that `gateway-rest` serves, and into `OpenAPI`
//! 3.1.
//!
//! The library is for build scripts: an error in a proto is a panic with the name of the method or
//! field.

mod binding;
mod descriptor;
mod info;
mod openapi;
mod options;
mod routes;
mod shapes;
mod source;
mod template;

use prost_reflect::{DescriptorPool, MethodDescriptor};
use quote::quote;

pub use info::{Access, Info, Requirement, bearer};
pub use openapi::{document as openapi, message_schema, text as openapi_text};
pub use options::Options;
use source::formatted;

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
