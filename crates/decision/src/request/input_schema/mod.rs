//! The JSON Schemas of tools, against which decisions check a request's input.
//!
//! The keywords are a closed list and part of the semantics: a decision must have the same result
//! forever. They are `type`, `enum`, `const`, `required`, `properties`, `additionalProperties`,
//! `items`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `minLength`, `maxLength`,
//! `minItems`, `maxItems`, `pattern`, `$ref` into the same schema, `anyOf`, `allOf`. Other keywords
//! are ignored. A null field counts as absent.

mod compile;
pub(crate) mod cost;
pub(crate) mod json;
mod node;
mod pattern;
mod validate;
pub(crate) mod violation;

use std::sync::OnceLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeStruct};
use serde_json::Value;

pub(crate) use self::node::is_whole;
use self::{
    compile::Compiled,
    json::Json,
    violation::{At, Validity},
};
pub use self::{compile::Fault, violation::Violation};
use crate::levels::words;

words! {
    /// The part of a request that a tool's schema covers.
    InputAt {
        Context "context",
        Arguments "arguments",
    }
}

/// The field of the context that [`InputAt::Arguments`] covers.
pub const ARGUMENTS: &str = "arguments";

/// The maximum number of schemas for a request without a tool. If there are more, the request must
/// name a tool.
pub const MOST_SCHEMAS: usize = 64;

/// A reference to a tool's schema by digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InputReference {
    /// Lower-case hex SHA-256 of the schema's canonical text.
    pub sha256: String,
    #[serde(default = "context", skip_serializing_if = "is_context")]
    pub at: InputAt,
}

const fn context() -> InputAt {
    InputAt::Context
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it by reference")]
fn is_context(at: &InputAt) -> bool {
    *at == InputAt::Context
}

/// A schema with its digest. It is compiled on first use.
#[derive(Debug)]
pub struct InputSchema {
    sha256: String,
    /// `None` if only the digest was read.
    text: Option<String>,
    compiled: OnceLock<Option<Compiled>>,
}

impl InputSchema {
    /// Pairs a schema's canonical JSON with its SHA-256 digest.
    pub fn new(sha256: String, text: String) -> Self {
        Self { sha256, text: Some(text), compiled: OnceLock::new() }
    }

    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns the compiled schema; `None` if it doesn't compile. Then every value is invalid.
    fn compiled(&self) -> Option<&Compiled> {
        let compile = || {
            let root: Value = serde_json::from_str(self.text.as_deref()?).ok()?;
            compile::compile(&root).1
        };
        self.compiled.get_or_init(compile).as_ref()
    }

    /// Returns the maximum number of steps per byte of a context.
    pub(crate) fn cost(&self) -> u64 {
        self.compiled().map_or(0, |compiled| compiled.cost)
    }

    /// Returns the fields required in the part of the request that the schema covers.
    pub(crate) fn required(&self) -> &[String] {
        let root = self.compiled().and_then(|compiled| compiled.nodes.first());
        root.map_or(&[], |node| &node.required)
    }

    pub(crate) fn judge(&self, value: Json<'_>, at: &At<'_>) -> Validity {
        match self.compiled() {
            Some(compiled) => compiled.judge(value, at),
            None => at.broken(|| "of a schema that cannot be read".to_owned()),
        }
    }
}

impl PartialEq for InputSchema {
    fn eq(&self, other: &Self) -> bool {
        self.sha256 == other.sha256
    }
}

/// Serialises the digest. The text is stored only once.
impl Serialize for InputSchema {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut members = to.serialize_struct("InputSchema", 1)?;
        members.serialize_field("sha256", &self.sha256)?;
        members.end()
    }
}

impl<'de> Deserialize<'de> for InputSchema {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Read {
            sha256: String,
        }
        let Read { sha256 } = Read::deserialize(from)?;
        Ok(Self { sha256, text: None, compiled: OnceLock::new() })
    }
}

/// The results of checking a schema before it is stored.
#[derive(Debug, Default)]
pub struct Checked {
    /// The reasons to refuse it; empty if it is valid.
    pub faults: Vec<Fault>,
    /// Pointers to keywords that decisions do not check.
    pub ignored: Vec<String>,
}

/// Checks a schema before it is stored.
pub fn check(schema: &Value) -> Checked {
    let (read, _) = compile::compile(schema);
    Checked { faults: read.faults, ignored: read.ignored }
}

#[cfg(test)]
mod tests;
