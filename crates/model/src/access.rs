//! Access rules from `authority.auth.v1`: the callers of each method, and the visible fields of each
//! record.

use std::{collections::HashMap, sync::LazyLock};

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

/// A field of a record, and the callers of the record's tenant who can see the field.
#[derive(Debug)]
pub struct VisibleField {
    /// The name of the field and of its column.
    pub name: &'static str,
    /// Every user and API key of the tenant.
    pub tenant: bool,
    /// Every user and API key of the tenant, unless the record is a human's.
    pub tenant_unless_human: bool,
    /// Users with any of these roles.
    pub roles: &'static [&'static str],
    /// The field names an affected principal. An API key that is bound to other principals can't
    /// see the record.
    pub about: bool,
}

/// Returns the fields that callers of the tenant may see in the rows of a table. A tenant's callers
/// can't see other fields, except `id` and `state`.
pub fn visible_fields(table: &str) -> &'static [VisibleField] {
    VISIBLE.iter().find(|(known, _)| *known == table).map_or(&[], |(_, fields)| *fields)
}

/// Returns the bindings of the method that reads a row of a table by its id. Empty for a table without
/// such a method.
pub fn reads(table: &str) -> &'static [Binding] {
    static BINDINGS: LazyLock<HashMap<&str, &[Binding]>> = LazyLock::new(|| {
        let rules: HashMap<_, _> = RULES.iter().copied().collect();
        READS.iter().filter_map(|(table, rpc)| Some((*table, *rules.get(rpc)?))).collect()
    });
    BINDINGS.get(table).copied().unwrap_or_default()
}

// `VISIBLE` maps tables to fields, and `READS` maps tables to methods. `RULES` maps
// `/package.Service/Method` to its bindings. A method that is not listed is refused.
include!(concat!(env!("OUT_DIR"), "/access.rs"));
