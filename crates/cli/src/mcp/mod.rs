//! Guards an MCP server: decides each tool call, holds it for people, stops it and reports it.
//!
//! [`Relay`] is a state machine without I/O. [`run`] performs its actions with a [`Service`].
//! [`introduce`] asks a server for its tools, for commands that pin them.

mod call;
mod clock;
mod decision;
mod definition;
mod event;
mod journal;
mod json;
mod lines;
mod message;
mod names;
mod permit;
mod question;
mod record;
mod relay;
mod reply;
mod run;
mod server;
mod service;
mod state;
#[cfg(test)]
mod tests;
mod text;
mod watch;

pub(crate) use definition::instructions_digest;
pub(crate) use event::Grants;
pub(crate) use question::Asker;
pub(crate) use record::{ServerRecord, ToolRecord};
pub(crate) use relay::{Relay, Settings};
pub(crate) use run::{Ended, Streams, run};
pub(crate) use server::{Introduction, Server, introduce, kill};
pub(crate) use service::Service;
