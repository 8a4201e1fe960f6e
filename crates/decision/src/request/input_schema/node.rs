//! One compiled schema of a document.

use serde_json::{Number, Value};

use super::{json::Json, pattern::Pattern};

/// A schema of the document, by its index in the list.
pub(super) type Id = usize;

/// The keywords of one schema. An absent keyword accepts every value.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Whether this is the schema `false`.
    pub(super) never: bool,
    pub(super) types: Option<Types>,
    pub(super) constant: Option<Value>,
    pub(super) among: Option<Among>,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_minimum: Option<f64>,
    pub(super) exclusive_maximum: Option<f64>,
    pub(super) min_length: Option<usize>,
    pub(super) max_length: Option<usize>,
    pub(super) pattern: Option<Pattern>,
    pub(super) min_items: Option<usize>,
    pub(super) max_items: Option<usize>,
    pub(super) items: Option<Id>,
    pub(super) required: Vec<String>,
    /// The schemas of fields, in order of name.
    pub(super) properties: Vec<(String, Id)>,
    pub(super) additional: Option<Id>,
    /// Schemas that the same value must also satisfy: `$ref` and `allOf`.
    pub(super) all: Vec<Id>,
    /// The schemas of `anyOf`; empty if the keyword is absent.
    pub(super) any: Vec<Id>,
}

impl Node {
    /// Returns the schemas that are applied to the same value.
    pub(super) fn here(&self) -> impl Iterator<Item = Id> {
        self.all.iter().chain(&self.any).copied()
    }

    /// Returns the names of the fields that have a schema.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.properties.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn property(&self, name: &str) -> Option<Id> {
        let found = self.properties.binary_search_by(|(own, _)| own.as_str().cmp(name)).ok()?;
        self.properties.get(found).map(|(_, id)| *id)
    }
}

/// The words of `type`, in the order of [`Types`]' bits.
const WORDS: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// A set of JSON Schema types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    /// Adds a type; `None` if the word isn't a type.
    pub(super) fn with(self, word: &str) -> Option<Self> {
        let bit = WORDS.iter().position(|known| *known == word)?;
        Some(Self(self.0 | 1 << bit))
    }

    pub(super) fn has(self, value: Json<'_>) -> bool {
        let bits = match value {
            Json::Null => 1,
            Json::Bool(_) => 1 << 1,
            Json::Number(number) if is_whole(number) => 1 << 2 | 1 << 3,
            Json::Number(_) => 1 << 3,
            Json::Text(_) => 1 << 4,
            Json::Array(_) => 1 << 5,
            Json::Object(_) => 1 << 6,
        };
        self.0 & bits != 0
    }

    pub(super) fn words(self) -> String {
        let own = WORDS.iter().enumerate().filter(|(bit, _)| self.0 & 1 << bit != 0);
        own.map(|(_, word)| *word).collect::<Vec<_>>().join(" or ")
    }
}

/// Whether the number has no fraction, in any notation: 5.0 is an integer.
pub(crate) fn is_whole(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// The values of `enum`.
#[derive(Debug, Default)]
pub(super) struct Among {
    /// The texts, sorted.
    texts: Vec<String>,
    others: Vec<Value>,
}

impl Among {
    pub(super) fn of(values: &[Value]) -> Self {
        let mut among = Self::default();
        for value in values {
            match value {
                Value::String(text) => among.texts.push(text.clone()),
                other => among.others.push(other.clone()),
            }
        }
        among.texts.sort_unstable();
        among
    }

    pub(super) fn has(&self, value: Json<'_>) -> bool {
        match value {
            Json::Text(text) => self.texts.binary_search_by(|own| own.as_str().cmp(text)).is_ok(),
            other => self.others.iter().any(|own| is_same(own, other)),
        }
    }

    /// Returns the maximum number of comparisons for one value.
    pub(super) fn cost(&self) -> u64 {
        self.others.len() as u64 + u64::from(!self.texts.is_empty())
    }
}

/// Whether two values are equal. Numbers are compared by value, and null fields count as absent.
pub(super) fn is_same(own: &Value, value: Json<'_>) -> bool {
    match (own, value) {
        (Value::Null, Json::Null) => true,
        (Value::Bool(own), Json::Bool(value)) => *own == value,
        (Value::Number(own), Json::Number(value)) => own.as_f64() == value.as_f64(),
        (Value::String(own), Json::Text(value)) => own == value,
        (Value::Array(own), Json::Array(items)) => {
            let mut pairs = own.iter().zip(items);
            own.len() == items.len() && pairs.all(|(own, item)| is_same(own, item.into()))
        }
        (Value::Object(own), Json::Object(members)) => {
            let present = |(_, value): &(&String, &Value)| !value.is_null();
            let same = |(name, own): (&String, &Value)| {
                members.get(name).is_some_and(|value| is_same(own, value.into()))
            };
            own.iter().filter(present).all(same)
                && own.iter().filter(present).count() == members.iter().filter(present).count()
        }
        _ => false,
    }
}
