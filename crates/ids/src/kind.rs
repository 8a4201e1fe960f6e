//! The kinds of ids and their forms.

use std::hash::Hash;

/// The kind of an [`Id`](crate::Id). It determines the form of the id.
pub trait Kind: Copy + Ord + Hash {
    /// The forms that an id of this kind can have. A part in angle brackets is variable.
    const FORMS: &'static [&'static str];

    /// Whether `part` is valid as a variable part of an id of this kind.
    fn admits(part: &str) -> bool {
        is_word(part)
    }
}

/// Whether a part consists of one or more ASCII letters, digits, `-`, `_` and `.`.
fn is_word(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !part.is_empty() && part.bytes().all(plain)
}

/// Whether a part consists of 64 lower-case hex digits.
fn is_hash(part: &str) -> bool {
    part.len() == 64 && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tenant {}

impl Kind for Tenant {
    const FORMS: &'static [&'static str] = &["svc:tenant:<slug>"];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Principal {}

impl Kind for Principal {
    const FORMS: &'static [&'static str] =
        &["svc:agent:<tenant>:<name>", "svc:ent:<tenant>:principal:<id>"];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entity {}

impl Kind for Entity {
    const FORMS: &'static [&'static str] = &["svc:ent:<tenant>:<kind>:<id>"];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delegation {}

impl Kind for Delegation {
    const FORMS: &'static [&'static str] = &["svc:del:<tenant>:<id>"];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {}

impl Kind for Decision {
    const FORMS: &'static [&'static str] = &["svc:decision:<hash>"];

    fn admits(part: &str) -> bool {
        is_hash(part)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {}

impl Kind for Evidence {
    const FORMS: &'static [&'static str] = &["svc:evidence:<hash>"];

    fn admits(part: &str) -> bool {
        is_hash(part)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Approval {}

impl Kind for Approval {
    const FORMS: &'static [&'static str] = &["svc:approval:<id>"];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApiKey {}

impl Kind for ApiKey {
    const FORMS: &'static [&'static str] = &["svc:api_key:<id>"];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Record {}

impl Kind for Record {
    const FORMS: &'static [&'static str] = &["svc:<kind>:<id>"];
}

// Kinds of records that are only named, by a `Ref`.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delivery {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Consultant {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Brand {}
