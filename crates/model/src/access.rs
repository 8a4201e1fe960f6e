//! Access rules from `authority.auth.v1.access`, and the surface that serves each method.

mod surfaces;

pub use surfaces::Surfaces;

/// One HTTP binding of a method, and the callers that it admits.
#[derive(Debug)]
pub struct Binding {
    /// The HTTP method, in upper case; empty if the gRPC method has no binding.
    pub verb: &'static str,
    /// The path template, as written in the proto; empty if the gRPC method has no binding.
    pub path: &'static str,
    pub access: Access,
}

/// The callers that a binding admits. Each field admits one kind of caller; a caller is admitted if
/// any field admits it.
#[derive(Debug)]
pub struct Access {
    /// No credential is needed.
    pub public: bool,
    /// The installation's owner.
    pub owner: bool,
    /// Any tenant user.
    pub member: bool,
    /// Tenant users with any of these roles.
    pub roles: &'static [&'static str],
    /// API keys with this scope; empty for none.
    pub scope: &'static str,
}

// `RULES` maps `/package.Service/Method` to its bindings. A method that is not listed is refused.
include!(concat!(env!("OUT_DIR"), "/access.rs"));
