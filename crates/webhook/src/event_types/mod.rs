//! The types of events, and which of them an endpoint asks for.

mod selection;

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;
use serde_json::Value;

use crate::schema::MemberType;

pub use selection::{MOST_PATTERNS, Selection, SelectionError};

/// The version of all types; under it, members are only added.
pub const VERSION: u32 = 1;

/// Test deliveries: no endpoint asks for them.
const TEST: &str = "svc.test";

/// Types whose events exist only while somebody asks for them, because they are as many as decisions.
const ON_DEMAND: [&str; 2] = ["svc.decision.allowed", "svc.decision.denied"];
/// A type of which that is so if this member of `data` is true.
const ON_DEMAND_IF: (&str, &str) = ("svc.evidence_pack.generated", "automatic");

static TYPES: LazyLock<Vec<EventType>> = LazyLock::new(|| {
    let json = include_str!(concat!(env!("OUT_DIR"), "/event_types.json"));
    let written: Vec<Written> = serde_json::from_str(json).unwrap_or_default();
    written.into_iter().map(EventType::from).collect()
});

/// No family has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no event type{suggestion}")]
pub struct UnknownEventType {
    name: String,
    suggestion: String,
}

/// How many letters a suggestion may differ by.
const FARTHEST: usize = 4;

/// The family whose name is nearest, for the end of a message; nothing if none is near.
fn suggestion(text: &str) -> String {
    let near = EventType::families().map(EventType::name);
    let near = near.min_by_key(|name| strsim::osa_distance(text, name));
    let near = near.filter(|name| strsim::osa_distance(text, name) <= FARTHEST);
    near.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// As the build script writes it.
#[derive(Deserialize)]
struct Written {
    name: String,
    schema: Value,
}

/// A type of events: one of the 24 families, or [`EventType::test`].
#[derive(Debug, PartialEq)]
pub struct EventType {
    name: String,
    schema: Value,
    members: MemberType,
}

impl EventType {
    /// The families, in the order of the proto.
    pub fn families() -> impl Iterator<Item = &'static Self> {
        TYPES.iter().filter(|event_type| event_type.name != TEST)
    }

    /// The type of test deliveries, `svc.test`.
    pub fn test() -> Option<&'static Self> {
        TYPES.iter().find(|event_type| event_type.name == TEST)
    }

    /// The family of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::families().find(|event_type| event_type.name == name)
    }

    /// The same; the error names the nearest one.
    pub fn find(name: &str) -> Result<&'static Self, UnknownEventType> {
        Self::named(name).ok_or_else(|| UnknownEventType {
            name: name.escape_debug().to_string(),
            suggestion: suggestion(name),
        })
    }

    /// For example `svc.authority.granted`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// JSON Schema 2020-12 of its events, served as `/schemas/<name>.v1.json`.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// What filters may name.
    pub fn members(&self) -> &MemberType {
        &self.members
    }

    /// Whether an event with these data exists only while somebody asks for its type. `None` is any event of
    /// the type: whether there may be such ones.
    pub fn is_on_demand(&self, data: Option<&Value>) -> bool {
        let (name, member) = ON_DEMAND_IF;
        let automatic = data.is_none_or(|data| data.get(member) == Some(&Value::Bool(true)));
        ON_DEMAND.contains(&self.name.as_str()) || (self.name == name && automatic)
    }
}

impl From<Written> for EventType {
    fn from(Written { name, schema }: Written) -> Self {
        // A schema that cannot be read would have no member that a filter may name.
        let members = MemberType::from_schema(&schema);
        let members = members.unwrap_or_else(|_| MemberType::Object(BTreeMap::new()));
        Self { name, schema, members }
    }
}

#[cfg(test)]
mod tests;
