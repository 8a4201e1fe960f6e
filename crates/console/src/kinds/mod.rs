//! The kinds of records with their members and operations, from the protos' descriptors, and
//! messages of any kind. This module is independent of pages and callers.

mod describe;
mod example;
mod exceptions;
mod kind;
mod member;
mod message;
mod operation;
mod states;

pub(crate) use kind::{KINDS, Kind};
pub(crate) use member::{Input, Member, Written, plain};
pub(crate) use message::{json, listed, of_json, set_text, text};
pub(crate) use operation::{Operation, Shape};
