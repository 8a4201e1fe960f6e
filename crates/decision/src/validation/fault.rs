//! A problem of a text, at a position that is not a line and column yet.

use super::uses::Span;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The text is refused.
    Error,
    /// It may be intended.
    Warning,
}

/// A problem at a position.
pub(super) struct Fault {
    pub(super) span: Span,
    pub(super) severity: Severity,
    pub(super) problem: String,
    pub(super) suggestion: Option<String>,
}
