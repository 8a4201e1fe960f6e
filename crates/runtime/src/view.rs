//! Limits a record to the fields that a caller may see, by `authority.auth.v1.visibility` in the
//! proto. The installation's owner sees all fields. In a record without visible fields, a tenant's
//! callers only see that it exists. A new column therefore stays hidden until the proto lists it.
//!
//! People that a record's own operation, such as `GetTool`, refuses see only that it exists.

use authority_api::identity::{Caller, CallerKind, is_closed_to};
use authority_model::{
    access::{VisibleField, visible_fields},
    proto::{delegation::Delegation, keys::ApiKey, registry::Purpose},
    record::Record as _,
};
use serde_json::{Map, Value};

/// The fields that are visible in every record.
const ALWAYS: [&str; 2] = ["id", "state"];
/// The field for the state of some records, such as API keys.
const STATUS: &str = "status";

/// Replaces empty bounding lists by null, as in all responses.
fn unbounded(table: &str, record: &mut Map<String, Value>) {
    let bounds = match table {
        "api_keys" => ApiKey::BOUNDS,
        "delegations" => Delegation::BOUNDS,
        "purposes" => Purpose::BOUNDS,
        _ => return,
    };
    for member in bounds {
        if let Some(list) = record.get_mut(*member).filter(|list| **list == Value::Array(vec![])) {
            *list = Value::Null;
        }
    }
}

/// Returns the record as the caller may see it. `None` if it does not exist for them.
pub(super) fn of(
    table: &str,
    mut record: Map<String, Value>,
    caller: &Caller,
) -> Option<Map<String, Value>> {
    unbounded(table, &mut record);
    if caller.is_owner() {
        return Some(record);
    }
    let fields = visible_fields(table);
    let about = fields.iter().filter(|field| field.about);
    let mut named = about.filter_map(|field| record.get(field.name)?.as_str()).peekable();
    if named.peek().is_some() && !named.any(|id| caller.acts_for(id)) {
        return None;
    }
    let role = match &caller.kind {
        CallerKind::Member { role, .. } => Some(role.as_str()),
        _ => None,
    };
    // A person's name is private. An agent's name is needed by its callers.
    let is_human = record.get("principal_class").is_some_and(|class| class == "human");
    let is_closed = is_closed_to(caller, table);
    let sees = |field: &VisibleField| {
        let is_listed = field.tenant
            || field.tenant_unless_human && !is_human
            || role.is_some_and(|role| field.roles.contains(&role));
        is_listed && (!is_closed || field.name == STATUS)
    };
    record.retain(|member, _| {
        ALWAYS.contains(&member.as_str())
            || fields.iter().any(|field| field.name == member.as_str() && sees(field))
    });
    Some(record)
}

#[cfg(test)]
mod tests;
