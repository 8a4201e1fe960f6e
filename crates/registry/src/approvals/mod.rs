//! Approvals: the requests opened by held decisions, and people's acts on those requests.
//!
//! The recorder opens a request in the transaction of the held decision. People act on it in this
//! module (`acted.rs`). `eligible.rs` decides who may act, by the tenant's authority
//! (`crates/graph/src/approvers.rs`). When the last required approval is given, the request is
//! evaluated again (`evaluation.rs`). This module never permits an action: only the call that cites the approved request
//! receives an allow.

mod act;
mod acted;
mod asked;
mod by_amount;
mod decidable;
mod eligible;
mod evaluation;
mod expire;
mod fresh;
mod handlers;
mod list;
mod named;
mod presentation;
mod question;
mod reality;
mod record;
mod reopen;
mod reviewed;
mod service;
mod show;
mod similar;
mod waiting;
mod withdraw;
mod would_be;

pub(super) use act::{ActContext, ApproverAct, Statement, Terms, make as act, sign};
pub(super) use eligible::{APPROVE, APPROVERS, Eligibility, requesters};
pub use expire::expire;
pub(super) use fresh::require as require_fresh;
pub use handlers::Approvals;
pub(super) use presentation::presented;
pub(super) use question::asked;
pub use waiting::measure_waiting;
