//! The reason why a file is not valid.

/// The reason why a file is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("invalid: {path}: {what}")]
    Invalid { path: String, what: String },
    #[error("unreadable: {0}")]
    Unreadable(String),
    /// Comparing two checkpoints requires the log's proof that one continues the other.
    #[error(
        "unproven: the checkpoints have {from} and {to} leaves: the log's proof that the one continues the \
         other is needed, GET {}", consistency_path(.slug, *.from, *.to)
    )]
    Unproven { slug: String, from: u64, to: u64 },
}

/// Returns the path of the log's proof that one checkpoint continues another.
///
/// `from` and `to` are the numbers of leaves of the checkpoints, and `slug` names the tenant.
pub fn consistency_path(slug: &str, from: u64, to: u64) -> String {
    format!("/v1/log/{slug}/consistency?from={from}&to={to}")
}

/// Returns a fault with the path of the field if `holds` is false.
pub(super) fn need(holds: bool, path: &str, what: &str) -> Result<(), Fault> {
    if holds {
        return Ok(());
    }
    let path = if path.is_empty() { "the file" } else { path };
    Err(Fault::Invalid { path: path.to_owned(), what: what.to_owned() })
}
