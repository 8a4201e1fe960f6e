//! The `event_types` of an endpoint.

use authority_decision::pattern::{Pattern, PatternError};
use serde_json::Value;

use super::event_type::{EventType, suggestion};

pub const MOST_PATTERNS: usize = 50;

/// The types that an endpoint or a stream selects, as patterns: `svc.decision.held`,
/// `svc.decision.*`, `*`.
///
/// The default is every family, without events that are created only on demand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(Option<Vec<Pattern>>);

/// The reason for refusing `event_types`. The message is shown after the name of the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    #[error("must have at least one; leave it out for the default")]
    None,
    #[error("has {0} patterns; 50 at most")]
    TooMany(usize),
    #[error("`{pattern}` {problem}")]
    Pattern { pattern: String, problem: PatternError },
    #[error("`{pattern}` matches no event type{suggestion}")]
    Unknown { pattern: String, suggestion: String },
}

impl Selection {
    /// Parses patterns; each must match a family.
    pub fn parse(patterns: &[String]) -> Result<Self, SelectionError> {
        if patterns.is_empty() {
            return Err(SelectionError::None);
        }
        if patterns.len() > MOST_PATTERNS {
            return Err(SelectionError::TooMany(patterns.len()));
        }
        patterns.iter().map(|text| parse(text)).collect::<Result<_, _>>().map(|all| Self(Some(all)))
    }

    /// Parses the patterns of a stored endpoint; an empty list is the default.
    pub fn of_record(patterns: &[String]) -> Result<Self, SelectionError> {
        if patterns.is_empty() { Ok(Self::default()) } else { Self::parse(patterns) }
    }

    /// Whether the selection includes an event of that type with this data.
    pub fn takes(&self, event_type: &EventType, data: &Value) -> bool {
        match &self.0 {
            Some(patterns) => covers(patterns, event_type),
            None => !event_type.is_on_demand(Some(data)),
        }
    }

    /// The families that may be delivered. A filter is checked against them.
    pub fn families(&self) -> impl Iterator<Item = &'static EventType> {
        EventType::families().filter(|event_type| match &self.0 {
            Some(patterns) => covers(patterns, event_type),
            // Data without members: a type is excluded only if all of its events are created on
            // demand.
            None => !event_type.is_on_demand(Some(&Value::Null)),
        })
    }

    /// The on-demand families that this selection includes. Their events must be created.
    pub fn on_demand(&self) -> impl Iterator<Item = &'static EventType> {
        let patterns = self.0.as_deref().unwrap_or_default();
        EventType::families()
            .filter(|event_type| event_type.is_on_demand(None) && covers(patterns, event_type))
    }
}

fn covers(patterns: &[Pattern], event_type: &EventType) -> bool {
    patterns.iter().any(|pattern| pattern.covers(event_type.name()))
}

fn parse(text: &str) -> Result<Pattern, SelectionError> {
    let pattern: Pattern = text.parse().map_err(|problem| SelectionError::Pattern {
        pattern: text.escape_debug().to_string(),
        problem,
    })?;
    if EventType::families().any(|event_type| pattern.covers(event_type.name())) {
        return Ok(pattern);
    }
    Err(SelectionError::Unknown { pattern: text.to_owned(), suggestion: suggestion(text) })
}
