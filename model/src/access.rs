//! Who may call which method, from `authority.auth.v1.access`.

/// Each member opens the method to one kind of caller; they add up.
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
    /// API keys that hold this scope; empty: none.
    pub scope: &'static str,
}

// `RULES`: `/package.Service/Method` and its access, a row a method. One without a row is refused.
include!(concat!(env!("OUT_DIR"), "/access.rs"));
