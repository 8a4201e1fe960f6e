//! Why a filter is refused.

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("filter: {problem} (at offset {offset})")]
pub struct FilterError {
    /// Bytes before the place of the problem.
    pub offset: usize,
    /// What is wrong and what to write instead.
    pub problem: String,
}

impl FilterError {
    pub(super) fn new(offset: usize, problem: impl Into<String>) -> Self {
        Self { offset, problem: problem.into() }
    }
}
