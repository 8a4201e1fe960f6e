//! The kinds of records, their members and operations, as the protos' descriptors have them, and messages of any
//! kind. Nothing here knows of pages or of who asks.

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
