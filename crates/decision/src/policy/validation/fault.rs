//! A problem of a text, at a byte position that is not yet converted to a line and column.

use super::uses::Span;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The text is refused.
    Error,
    /// The text may be intended.
    Warning,
}

/// A problem at a position.
pub(super) struct Fault {
    pub(super) span: Span,
    pub(super) severity: Severity,
    pub(super) problem: String,
    pub(super) suggestion: Option<String>,
}
