//! Types of the fields of `context.input`, by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The type of a field of `context.input` in policies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputType {
    Boolean,
    Integer,
    Decimal,
    String,
    Set(Box<InputType>),
    Record(Members),
}

/// Fields by name.
pub type Members = BTreeMap<String, Member>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Member {
    pub kind: InputType,
    /// Whether a policy may read the field without a `has` test.
    pub required: bool,
}
