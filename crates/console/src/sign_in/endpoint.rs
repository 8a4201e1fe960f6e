//! Addresses of the identity provider.

/// Adds a query to an endpoint of the identity provider. The endpoint may already have a query.
pub(super) fn with_query(endpoint: &str, query: &str) -> String {
    let joint = if endpoint.contains('?') { '&' } else { '?' };
    format!("{endpoint}{joint}{query}")
}
