//! The syntax tree of a filter.

/// An expression; its value on an event is true, false or an error.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    /// Operands of `||`.
    Any(Vec<Expression>),
    /// Operands of `&&`.
    All(Vec<Expression>),
    Not(Box<Expression>),
    Has(Path),
    Compare {
        path: Path,
        operator: Operator,
        literal: Literal,
    },
    In {
        path: Path,
        literals: Vec<Literal>,
    },
    StartsWith {
        path: Path,
        text: String,
    },
    EndsWith {
        path: Path,
        text: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A member of the event, and its place in the filter's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) names: Vec<String>,
    pub(super) offset: usize,
}

impl Path {
    pub(super) fn dotted(&self) -> String {
        self.names.join(".")
    }
}

/// A literal, and its place in the filter's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Literal {
    pub(super) value: LiteralValue,
    pub(super) offset: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LiteralValue {
    Text(String),
    Integer(i64),
    Boolean(bool),
}
