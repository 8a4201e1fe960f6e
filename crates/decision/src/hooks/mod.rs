//! Tool calls of coding agents.
//!
//! A coding agent sends each tool call to its hook before the call runs. This folder converts the
//! body of the hook to a question, and a decision to the form that the coding agent reads. The
//! service and the command `hook` share it.

mod client;
mod question;
mod reply;

pub use client::Client;
pub use question::{Asked, Problem, Question, question};
pub use reply::{Decided, Verdict};
