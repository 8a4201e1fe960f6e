//! The reason why a policy's text is refused.

/// The reason why a policy's text is refused. `line` and `column` count from 1, columns in
/// characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct PolicyError {
    pub line: usize,
    pub column: usize,
    pub problem: String,
}

impl PolicyError {
    pub(crate) fn at(text: &str, offset: usize, problem: impl Into<String>) -> Self {
        let (line, column) = position(text, offset);
        Self { line, column, problem: problem.into() }
    }
}

/// Returns the line and column of a byte of the text. Both count from 1, columns in characters.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, before.rsplit('\n').next().unwrap_or("").chars().count() + 1)
}
