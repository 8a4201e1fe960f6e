//! Parses JSON strictly: texts that parsers could understand differently are refused.
//!
//! Duplicate fields, and integers that a double cannot represent, are refused.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::fault::{Fault, need};

/// 2^53. From this number on, a double cannot represent every integer.
const BEYOND: f64 = 9_007_199_254_740_992.0;

/// Parses a file.
///
/// # Errors
/// The file is not JSON, or is ambiguous.
pub(super) fn strict(file: &[u8]) -> Result<Value, Fault> {
    let node: Node = serde_json::from_slice(file).map_err(|error| {
        let what = error.to_string();
        // A lone surrogate or a number out of range is JSON, but ambiguous.
        if what.contains("hex escape") || what.contains("out of range") {
            return Fault::invalid("", what);
        }
        Fault::Unreadable(what)
    })?;
    value(node, &Path::Top)
}

/// Returns the path of a field below another path.
pub(super) fn under(path: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match (plain, path.is_empty()) {
        // The brackets and quotes keep the name from looking like a path.
        (false, _) => format!("{path}[{}]", Value::from(name)),
        (true, true) => name.to_owned(),
        (true, false) => format!("{path}.{name}"),
    }
}

/// A position in the document, formatted only for an error.
enum Path<'a> {
    Top,
    Member(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn text(&self) -> String {
        match self {
            Self::Top => String::new(),
            Self::Member(above, name) => under(&above.text(), name),
            Self::Item(above, place) => format!("{}[{place}]", above.text()),
        }
    }

    /// Whether non-integer numbers are permitted here: only in the value of a context.
    fn is_free(&self) -> bool {
        match self {
            Self::Top => false,
            Self::Member(Path::Member(Path::Top, "context"), "value") => true,
            Self::Member(above, _) | Self::Item(above, _) => above.is_free(),
        }
    }

    fn need(&self, holds: bool, what: &str) -> Result<(), Fault> {
        if holds { Ok(()) } else { need(false, &self.text(), what) }
    }
}

fn value(node: Node, path: &Path<'_>) -> Result<Value, Fault> {
    Ok(match node {
        Node::Null => Value::Null,
        Node::Bool(bool) => Value::Bool(bool),
        Node::Text(text) => Value::String(text),
        Node::Integer(number) => {
            #[expect(clippy::cast_precision_loss, reason = "only larger numbers are rounded")]
            let size = (number as f64).abs();
            path.need(size < BEYOND, "is beyond 2^53-1")?;
            Value::from(i64::try_from(number).unwrap_or_default())
        }
        Node::Number(number) => {
            path.need(number.abs() < BEYOND, "is beyond 2^53-1")?;
            path.need(path.is_free(), "must be an integer")?;
            Value::from(number)
        }
        Node::List(items) => {
            let items = items.into_iter().enumerate();
            let read = items.map(|(place, item)| value(item, &Path::Item(path, place)));
            Value::Array(read.collect::<Result<_, _>>()?)
        }
        Node::Object(members) => {
            let mut read = Map::new();
            for (name, item) in members {
                let below = Path::Member(path, &name);
                below.need(!read.contains_key(&name), "occurs twice")?;
                let item = value(item, &below)?;
                read.insert(name, item);
            }
            Value::Object(read)
        }
    })
}

/// JSON as it was written, with duplicate fields of objects.
enum Node {
    Null,
    Bool(bool),
    Integer(i128),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Node;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, bool: bool) -> Result<Node, E> {
        Ok(Node::Bool(bool))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Integer(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Integer(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = from.next_entry()? {
            members.push(member);
        }
        Ok(Node::Object(members))
    }
}
