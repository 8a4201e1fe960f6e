//! The rows that a decision leaves in the database: the decision with its facts, the counted limits and
//! approvals that it spent, its event in the outbox, the nodes of its tenant's log and its pack.

pub mod decision_event;
pub mod log_nodes;
pub mod log_origin;
pub mod spending;
pub mod stored_decisions;
pub mod stored_packs;
