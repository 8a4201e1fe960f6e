//! Addresses of the identity provider.

/// An endpoint of the provider's, which may have a query of its own.
pub(super) fn with_query(endpoint: &str, query: &str) -> String {
    let joint = if endpoint.contains('?') { '&' } else { '?' };
    format!("{endpoint}{joint}{query}")
}
