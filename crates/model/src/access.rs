//! Who may call which method, from `authority.auth.v1.access`, and on which surface it is served.

mod surfaces;

pub use surfaces::Surfaces;

/// One HTTP binding of a method, and who may call it there.
#[derive(Debug)]
pub struct Binding {
    /// The HTTP method, in upper case; empty if the gRPC method has no binding.
    pub verb: &'static str,
    /// The path template, as written in the proto; empty if the gRPC method has no binding.
    pub path: &'static str,
    pub access: Access,
}

/// Each member opens the binding to one kind of caller; they add up.
#[derive(Debug)]
pub struct Access {
    /// No credential needed.
    pub public: bool,
    /// The installation's owner.
    pub owner: bool,
    /// Any member of a tenant.
    pub member: bool,
    /// Members of a tenant with one of these roles.
    pub roles: &'static [&'static str],
    /// API keys that hold this scope; empty for none.
    pub scope: &'static str,
}

// `RULES`: `/package.Service/Method` and its bindings. A method without a row is refused.
include!(concat!(env!("OUT_DIR"), "/access.rs"));
