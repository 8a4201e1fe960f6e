//! The filter of an endpoint: a small part of CEL, the Common Expression Language.
//!
//! Every filter is valid CEL and means what it means there; most of CEL is left out, so that a filter
//! cannot be slow and every path can be checked when it is written.
//!
//! ```text
//! any        = all { "||" all }
//! all        = unary { "&&" unary }
//! unary      = "!" unary | primary
//! primary    = "(" any ")" | "has" "(" path ")" | test
//! test       = path ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) literal
//!            | path "in" "[" literal { "," literal } "]"
//!            | path "." ( "startsWith" | "endsWith" ) "(" text ")"
//! path       = name { "." name }
//! literal    = text | [ "-" ] digits | "true" | "false"
//! ```
//!
//! The members of the event are the variables: `data.risk == "high" && !has(data.delegation_id)`. After `!`
//! a comparison needs parentheses, because CEL reads `!a == b` as `(!a) == b`.
//!
//! A member that is absent makes its test an error. As in CEL, `true || error` is true and `false && error`
//! is false, in either order; everything else that has an error is an error.

mod check;
mod error;
mod evaluate;
mod expression;
mod parser;
mod token;

use serde_json::Value;

pub use error::FilterError;

use crate::schema::MemberType;
use expression::Expression;

/// Bytes of a filter's text.
pub const LONGEST_FILTER: usize = 1024;
/// How deep parentheses and negations nest, the filter itself counted.
pub const DEEPEST: usize = 16;
/// Paths, literals, tests and operators of a filter.
pub const MOST_NODES: usize = 128;

/// A filter that was parsed and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(Expression);

/// What a filter says of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    Yes,
    No,
    /// It could not be evaluated, for example because a member is absent: no match, but counted.
    Error,
}

impl Filter {
    /// Parses a filter for events of these types: each path must be a member of at least one of them, and
    /// what it is compared with must fit in each that has it.
    pub fn parse(text: &str, types: &[&MemberType]) -> Result<Self, FilterError> {
        let expression = parser::parse(text)?;
        check::check(&expression, types)?;
        Ok(Self(expression))
    }

    /// Evaluates the filter on an event, which is a JSON object.
    pub fn evaluate(&self, event: &Value) -> Match {
        match evaluate::evaluate(&self.0, event) {
            Some(true) => Match::Yes,
            Some(false) => Match::No,
            None => Match::Error,
        }
    }
}

#[cfg(test)]
mod tests;
