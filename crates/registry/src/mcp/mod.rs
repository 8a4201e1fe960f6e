//! MCP servers and their tools. A tool is created when its definition is first seen (`observe.rs`), and
//! is denied until a person pins that definition (`pin.rs`).
//!
//! A server is an external app with `mcp`, and its tools are tools with `mcp`. `record_rules.rs` has
//! the rules of these records, and `resource.rs` finds the resource that a call names. `advice.rs`
//! collects the policies' advice for a tool. The texts of definitions are in a table of their own
//! (`definitions.rs`): the graph, the history and lists do without them.

mod advice;
mod bound;
mod definition;
pub(crate) mod definitions;
mod observe;
pub(crate) mod pin;
mod pin_states;
mod proposal;
pub(crate) mod record_rules;
mod resource;
mod server;
mod service;
