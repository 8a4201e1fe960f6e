//! The types of an event's members, read from its JSON Schema, for checking filters.

use std::collections::BTreeMap;

use serde_json::Value;

/// The type of a member, or of the event itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberType {
    /// Text. If `words` is not empty, other texts are invalid.
    Text {
        words: Vec<String>,
    },
    Integer,
    Boolean,
    /// An array with items of any type.
    List,
    Object(BTreeMap<String, MemberType>),
}

/// A part of a JSON Schema has a type that [`MemberType`] does not support.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: a schema of an event has text, integers, booleans, arrays and objects only")]
pub struct SchemaError {
    /// The path within the event, for example `data.amount`; empty for the event itself.
    pub path: String,
}

impl MemberType {
    /// Reads a schema that has a `type` everywhere and no references.
    pub fn from_schema(schema: &Value) -> Result<Self, SchemaError> {
        read(schema, "")
    }

    /// The type of the member at `path`, if it has one.
    pub(crate) fn at(&self, path: &[String]) -> Option<&Self> {
        path.iter().try_fold(self, |outer, name| match outer {
            Self::Object(members) => members.get(name),
            _ => None,
        })
    }

    /// The dotted paths of all members, including nested members.
    pub(crate) fn paths(&self) -> Vec<String> {
        let Self::Object(members) = self else { return Vec::new() };
        let below = |(name, member): (&String, &Self)| {
            let inner = member.paths().into_iter().map(move |path| format!("{name}.{path}"));
            std::iter::once(name.clone()).chain(inner).collect::<Vec<_>>()
        };
        members.iter().flat_map(below).collect()
    }
}

fn read(schema: &Value, path: &str) -> Result<MemberType, SchemaError> {
    let other = || SchemaError { path: path.to_owned() };
    match schema.get("type").and_then(Value::as_str).ok_or_else(other)? {
        "string" => Ok(MemberType::Text { words: words(schema) }),
        "integer" => Ok(MemberType::Integer),
        "boolean" => Ok(MemberType::Boolean),
        "array" => Ok(MemberType::List),
        "object" => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let members = properties.into_iter().flatten().map(|(name, member)| {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                Ok((name.clone(), read(member, &path)?))
            });
            Ok(MemberType::Object(members.collect::<Result<_, _>>()?))
        }
        _ => Err(other()),
    }
}

fn words(schema: &Value) -> Vec<String> {
    let several = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    let all = several.chain(schema.get("const"));
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_gives_its_paths_and_their_types() {
        let schema = json!({"type": "object", "properties": {
            "event_type": {"type": "string", "const": "svc.test"},
            "data": {"type": "object", "properties": {
                "count": {"type": "integer"}, "last": {"type": "boolean"},
                "refs": {"type": "array", "items": {"type": "string"}},
                "word": {"type": "string", "enum": ["a", "b"]},
            }},
        }});
        let event = MemberType::from_schema(&schema).unwrap();
        let paths = ["data", "data.count", "data.last", "data.refs", "data.word", "event_type"];
        assert_eq!(event.paths(), paths);
        let at = |path: &str| event.at(&path.split('.').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(at("event_type"), Some(&MemberType::Text { words: vec!["svc.test".into()] }));
        let words = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(at("data.word"), Some(&MemberType::Text { words }));
        assert_eq!(at("data.refs"), Some(&MemberType::List));
        assert_eq!(at("data.count.more"), None);
        assert_eq!(at("count"), None);
    }

    #[test]
    fn other_types_are_refused_with_their_path() {
        let of = |member: Value| {
            let inner = json!({"type": "object", "properties": {"amount": member}});
            MemberType::from_schema(&json!({"type": "object", "properties": {"data": inner}}))
        };
        for member in [json!({"type": "number"}), json!({"$ref": "#"}), json!({"type": ["string"]})]
        {
            assert_eq!(of(member).unwrap_err().path, "data.amount");
        }
        assert!(of(json!({"type": "integer"})).is_ok());
    }
}
