//! The filter of an endpoint: a small part of CEL, the Common Expression Language.
//!
//! Every filter is valid CEL with the same meaning. Most of CEL is left out. Evaluation is
//! therefore always fast, and every path can be checked when the filter is written.
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
//! The variables are the members of the event: `data.risk == "high" && !has(data.delegation_id)`. A
//! comparison after `!` needs parentheses, because CEL parses `!a == b` as `(!a) == b`.
//!
//! A test of an absent member is an error. As in CEL, `true || error` is true and `false && error`
//! is false, in either order. Any other expression that contains an error is an error.

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
pub use parser::{DEEPEST, LONGEST_FILTER, MOST_NODES};

/// A parsed and checked filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(Expression);

/// The result of a filter on an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    Yes,
    No,
    /// The filter could not be evaluated, for example because a member is absent. The event does
    /// not match, and the error is counted.
    Error,
}

impl Filter {
    /// Parses a filter for events of these types. Each path must be a member of at least one type,
    /// and the literal must fit every type that has the member.
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
