//! Parsers of arguments that several commands have.

use authority_ids::{Ref, TenantId, TenantRef};
use clap::builder::{StringValueParser, TypedValueParser};

/// Parses an id, which becomes a segment of a path. An empty id, or an id of dots, would change the
/// path.
pub(crate) fn segment(text: &str) -> Result<String, &'static str> {
    match text {
        "" | "." | ".." => Err("is not an id"),
        text => Ok(text.to_owned()),
    }
}

/// Parses the id of a record of kind `K`, which becomes a segment of a path.
pub(crate) fn id<K>(text: &str) -> Result<Ref<K>, &'static str> {
    segment(text).map(Ref::from)
}

/// Parses an action for an exact match in a list: a pattern would match no action.
pub(crate) fn exact_action(text: &str) -> Result<String, &'static str> {
    if text.contains('*') {
        return Err(
            "must be the exact action, such as payment.execute: lists have no filter by pattern",
        );
    }
    Ok(text.to_owned())
}

/// Parses a tenant's id or slug.
pub fn tenant() -> impl TypedValueParser<Value = TenantRef> {
    StringValueParser::new().map(|text| tenant_id(&text))
}

/// Returns a tenant's id for its id or its slug.
pub fn tenant_id(named: &str) -> TenantRef {
    TenantId::complete(named)
}
