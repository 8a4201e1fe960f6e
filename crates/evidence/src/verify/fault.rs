//! The reason why a file is not valid.

/// The reason why a file is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The path is empty if the fault is of the whole file.
    #[error("invalid: {}: {what}", named(.path))]
    Invalid { path: String, what: String, cause: Cause },
    #[error("unreadable: {0}")]
    Unreadable(String),
    /// Comparing two checkpoints requires the log's proof that one continues the other.
    #[error(
        "unproven: the checkpoints have {from} and {to} leaves: the log's proof that the one continues the \
         other is needed, GET {}", consistency_path(.slug, *.from, *.to)
    )]
    Unproven { slug: String, from: u64, to: u64 },
}

/// What makes a file invalid, as far as the advice for it differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A field is unknown or missing. The file may be of another kind.
    Fields,
    /// The trusted keys do not include the signature's `kid`.
    NoKey,
    Other,
}

impl Fault {
    pub(super) fn invalid(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Invalid { path: path.into(), what: what.into(), cause: Cause::Other }
    }

    /// Whether a trusted key is missing.
    pub fn lacks_key(&self) -> bool {
        matches!(self, Self::Invalid { cause: Cause::NoKey, .. })
    }
}

/// Returns a path, or words for the path of the whole file.
pub(super) fn named(path: &str) -> &str {
    if path.is_empty() { "the file" } else { path }
}

/// Returns the path of the log's proof that one checkpoint continues another.
///
/// `from` and `to` are the numbers of leaves of the checkpoints, and `slug` names the tenant.
pub fn consistency_path(slug: &str, from: u64, to: u64) -> String {
    format!("/v1/log/{slug}/consistency?from={from}&to={to}")
}

/// Returns a fault with the path of the field if `holds` is false.
pub(super) fn need(holds: bool, path: &str, what: &str) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(Fault::invalid(path, what)) }
}

/// Returns a fault if a field is unknown or missing.
pub(super) fn need_field(holds: bool, path: &str, what: &str) -> Result<(), Fault> {
    if holds {
        return Ok(());
    }
    Err(Fault::Invalid { path: path.to_owned(), what: what.to_owned(), cause: Cause::Fields })
}

/// Returns a fault if the trusted keys do not include a signature's `kid`.
pub(super) fn need_key(holds: bool, path: &str, kid: &str) -> Result<(), Fault> {
    if holds {
        return Ok(());
    }
    let what = format!("no key for {kid}");
    Err(Fault::Invalid { path: path.to_owned(), what, cause: Cause::NoKey })
}
