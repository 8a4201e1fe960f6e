//! The kinds of records with their members and operations, from the protos' descriptors, and
//! messages of any kind. This module is independent of pages and callers.

mod describe;
mod example;
mod exceptions;
mod kind;
mod member;
mod message;
mod of_json;
mod operation;
mod states;
mod to_json;

pub(crate) use kind::{KINDS, Kind};
pub(crate) use member::{Input, Member, Written, plain};
pub(crate) use message::{listed, set_text, text, texts};
pub(crate) use of_json::of_json;
pub(crate) use operation::{Operation, Shape};
pub(crate) use to_json::json;
