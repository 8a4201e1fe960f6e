//! The types of events.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;
use serde_json::Value;

use crate::schema::MemberType;

/// The version of all types. Within a version, members are only added.
pub const VERSION: u32 = 1;

/// The type of test deliveries; endpoints cannot select it.
pub(super) const TEST: &str = "svc.test";

/// Event types that are created only while a subscriber selects them, because there is an event for
/// each decision.
const ON_DEMAND: [&str; 2] = ["svc.decision.allowed", "svc.decision.denied"];
/// An event type, and a member of its `data`. If the member is true, the event is created on
/// demand.
const ON_DEMAND_IF: (&str, &str) = ("svc.evidence_pack.generated", "automatic");

pub(super) static TYPES: LazyLock<Vec<EventType>> = LazyLock::new(|| {
    let json = include_str!(concat!(env!("OUT_DIR"), "/event_types.json"));
    let written: Vec<Written> = serde_json::from_str(json).unwrap_or_default();
    written.into_iter().map(EventType::from).collect()
});

/// The name matches no family.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not an event type{suggestion}")]
pub struct UnknownEventType {
    name: String,
    suggestion: String,
}

/// The greatest edit distance between an unknown name and a suggested name.
const FARTHEST: usize = 4;

/// Suggests the family with the nearest name, for the end of a message; empty if none is near.
pub(super) fn suggestion(text: &str) -> String {
    let near = EventType::families().map(EventType::name);
    let near = near.min_by_key(|name| strsim::osa_distance(text, name));
    let near = near.filter(|name| strsim::osa_distance(text, name) <= FARTHEST);
    near.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// The output of the build script.
#[derive(Deserialize)]
struct Written {
    name: String,
    schema: Value,
}

/// A type of events: a family (there are 24), or [`EventType::test`].
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

    /// The family with that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::families().find(|event_type| event_type.name == name)
    }

    /// Like [`named`](Self::named), but the error suggests the nearest name.
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

    /// The JSON Schema 2020-12 of its events, served as `/schemas/<name>.v1.json`.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The members that filters may use.
    pub fn members(&self) -> &MemberType {
        &self.members
    }

    /// Whether an event with this data is created only while a subscriber selects its type. If
    /// `data` is `None`, whether at least some events of the type are.
    pub fn is_on_demand(&self, data: Option<&Value>) -> bool {
        let (name, member) = ON_DEMAND_IF;
        let automatic = data.is_none_or(|data| data.get(member) == Some(&Value::Bool(true)));
        ON_DEMAND.contains(&self.name.as_str()) || (self.name == name && automatic)
    }
}

impl From<Written> for EventType {
    fn from(Written { name, schema }: Written) -> Self {
        // If the schema is unreadable, filters can use no member of the type.
        let members = MemberType::from_schema(&schema);
        let members = members.unwrap_or_else(|_| MemberType::Object(BTreeMap::new()));
        Self { name, schema, members }
    }
}
