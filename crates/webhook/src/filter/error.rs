//! The reason for refusing a filter.

/// A problem and its place in the filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (at offset {offset})")]
pub struct FilterError {
    /// The number of bytes before the problem.
    pub offset: usize,
    /// The problem and its correction.
    pub problem: String,
}

impl FilterError {
    pub(super) fn new(offset: usize, problem: impl Into<String>) -> Self {
        Self { offset, problem: problem.into() }
    }
}
