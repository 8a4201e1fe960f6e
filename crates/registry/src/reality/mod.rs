//! Reality coupling: sources of truth for actions, observations, checks and drift.
//!
//! Decisions read the anchors, the newest snapshot of each anchor (maintained by database
//! triggers), overrides and drift events. The engine that evaluates them is in authority-decision.

mod anchor;
mod anchor_limit;
mod anchor_rules;
mod anchor_verify;
mod assumed;
mod check;
mod decide;
mod drift;
mod drift_found;
mod drift_moves;
mod drift_quarantine;
mod drift_revoke;
mod feed;
mod feed_batch;
mod feed_pace;
mod freshness;
mod jwks;
mod objects;
mod overriding;
mod refers;
mod run;
pub mod signed_snapshot;
mod snapshot;
mod snapshot_rules;
mod snapshot_service;
mod snapshot_verify;
mod stored;

pub use feed::SnapshotFeed;
pub use feed_pace::RATE_LIMIT;
pub use snapshot_service::RealitySnapshots;
