//! The JSON Schemas of tools, as a decision checks a request's input by them.
//!
//! The keywords are a closed list and part of the semantics, so that a decision is decided the same for ever:
//! `type`, `enum`, `const`, `required`, `properties`, `additionalProperties`, `items`, `minimum`, `maximum`,
//! `exclusiveMinimum`, `exclusiveMaximum`, `minLength`, `maxLength`, `minItems`, `maxItems`, `pattern`, `$ref` into the
//! same schema, `anyOf`, `allOf`. Others do not exist for it. A member that is null is absent.

mod compile;
pub(crate) mod cost;
pub(crate) mod json;
mod judge;
mod node;
mod pattern;
pub(crate) mod violation;

use std::sync::OnceLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeStruct};
use serde_json::Value;

pub(crate) use self::node::is_whole;
use self::{
    compile::Compiled,
    json::Json,
    violation::{At, Held},
};
pub use self::{compile::Fault, violation::Violation};
use super::levels::words;

words! {
    /// What a tool's schema is about.
    InputAt {
        Context "context",
        Arguments "arguments",
    }
}

/// The member of the context that holds what [`InputAt::Arguments`] is about.
pub const ARGUMENTS: &str = "arguments";

/// The most schemas that bind a request that names no tool. With more, naming one is the remedy.
pub const MOST_SCHEMAS: usize = 64;

/// A tool's schema, by its digest.
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

/// A schema with its digest: compiled once, when it is first asked.
#[derive(Debug)]
pub struct InputSchema {
    sha256: String,
    /// `None` if only the digest was read.
    text: Option<String>,
    compiled: OnceLock<Option<Compiled>>,
}

impl InputSchema {
    /// `text` is the schema's canonical JSON, of which `sha256` is the digest.
    pub fn new(sha256: String, text: String) -> Self {
        Self { sha256, text: Some(text), compiled: OnceLock::new() }
    }

    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// `None` if it does not compile: then nothing satisfies it.
    fn compiled(&self) -> Option<&Compiled> {
        let compile = || {
            let root: Value = serde_json::from_str(self.text.as_deref()?).ok()?;
            compile::compile(&root).1
        };
        self.compiled.get_or_init(compile).as_ref()
    }

    /// The steps that it takes for each byte of a context, at most.
    pub(crate) fn cost(&self) -> u64 {
        self.compiled().map_or(0, |compiled| compiled.cost)
    }

    /// The members that what it is about must have.
    pub(crate) fn required(&self) -> &[String] {
        let root = self.compiled().and_then(|compiled| compiled.nodes.first());
        root.map_or(&[], |node| &node.required)
    }

    pub(crate) fn judge(&self, value: Json<'_>, at: &At<'_>) -> Held {
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

/// Serialised as its digest: the text is stored once.
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

/// What is to be said of a schema before it is stored.
#[derive(Debug, Default)]
pub struct Checked {
    /// Why it is refused; empty if it is not.
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
