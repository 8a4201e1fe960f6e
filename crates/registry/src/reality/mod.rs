//! Reality coupling: sources of truth that ground actions, observations of them, checks, and drift.
//!
//! What decisions read of it are anchors, the newest snapshot of each (settled by triggers of the tables),
//! overrides and drift events. The engine that judges is authority-decision's.

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
