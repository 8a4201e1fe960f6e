//! Reads settings from a TOML table, with the setting's name in errors.
//!
//! serde's own errors are plain texts. These errors keep the setting's path and the known names.

use std::fmt;

use serde::{
    Deserializer,
    de::{
        self, DeserializeSeed, Expected, IntoDeserializer, MapAccess, Unexpected, Visitor,
        value::{SeqDeserializer, StringDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Map, Value, map};

/// The settings of a section, or of a file.
pub(super) type Table = Map<String, Value>;

/// Sets a value by its dotted name.
///
/// If a section's name already has a value that is not a table, keeps that value. Reading the
/// settings then fails.
pub(super) fn set(table: &mut Table, name: &str, value: Value) {
    let Some((section, rest)) = name.split_once('.') else {
        table.insert(name.to_owned(), value);
        return;
    };
    let inner = table.entry(section).or_insert_with(|| Table::new().into());
    if let Value::Object(inner) = inner {
        set(inner, rest, value);
    }
}

/// Parses text as a TOML number, boolean, list or table, or as a JSON object. Any other text is a
/// string.
pub(super) fn parsed(text: &str) -> Value {
    let whole = basic_toml::from_str::<Table>(&format!("value = {text}"));
    let value =
        whole.ok().filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    let value = value.or_else(|| serde_json::from_str(text).ok().filter(Value::is_object));
    value.unwrap_or_else(|| Value::from(text))
}

/// A value that does not fit its setting, and the reason.
#[derive(Debug)]
pub(super) struct Unfit {
    /// The setting's path, innermost name first.
    path: Vec<String>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    UnknownName(String, &'static [&'static str]),
    UnknownWord(String, &'static [&'static str]),
    Other(String),
}

impl Unfit {
    fn new(kind: Kind) -> Self {
        Self { path: Vec::new(), kind }
    }

    /// Returns the setting's dotted name. For an unknown name, returns its section's name.
    pub(super) fn place(&self) -> String {
        let names: Vec<&str> = self.path.iter().rev().map(String::as_str).collect();
        names.join(".")
    }

    fn below(mut self, name: &str) -> Self {
        self.path.push(name.to_owned());
        self
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::UnknownName(name, _) => write!(f, "unknown setting `{name}`"),
            Kind::UnknownWord(word, _) => write!(f, "unknown word `{word}`"),
            Kind::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Unfit {}

impl de::Error for Unfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Kind::Other(message.to_string()))
    }

    // serde's own text would show the value, which may be a URL with a password.
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {expected}, not {}", kind(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {expected}, not {} like this", kind(found)))
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::new(Kind::UnknownName(name.to_owned(), known))
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        Self::new(Kind::UnknownWord(word.to_owned(), known))
    }
}

/// Returns the kind of a value, without the value.
fn kind(found: Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer",
        Unexpected::Float(_) => "a number",
        Unexpected::Char(_) | Unexpected::Str(_) => "a string",
        Unexpected::Seq => "a list",
        Unexpected::Map => "a section",
        _ => "a value",
    }
}

/// A value that is being read.
pub(super) struct Node(pub(super) Value);

impl<'de> Deserializer<'de> for Node {
    type Error = Unfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            Value::Number(number) => match number.as_i64() {
                Some(number) => visitor.visit_i64(number),
                None => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::Bool(is) => visitor.visit_bool(is),
            // A number that JSON does not have: `nan` or `inf`.
            Value::Null => visitor.visit_f64(f64::NAN),
            Value::Array(items) => {
                visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(Node)))
            }
            Value::Object(table) => {
                visitor.visit_map(Members { rest: table.into_iter(), next: None })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        match self.0 {
            Value::String(word) => {
                let word: StringDeserializer<Unfit> = word.into_deserializer();
                word.deserialize_enum(name, variants, visitor)
            }
            other => Self(other).deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, Unfit> for Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The settings of a section. Adds a setting's name to an error in its value.
struct Members {
    rest: map::IntoIter,
    next: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for Members {
    type Error = Unfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Unfit> {
        self.next = self.rest.next();
        let Some((name, _)) = &self.next else { return Ok(None) };
        let name: StringDeserializer<Unfit> = name.clone().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Unfit> {
        let Some((name, value)) = self.next.take() else {
            return Err(de::Error::custom("a value without a name"));
        };
        seed.deserialize(Node(value)).map_err(|unfit| unfit.below(&name))
    }
}
