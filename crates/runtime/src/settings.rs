//! The settings of the runtime.

use std::{sync::Arc, time::Duration};

/// The runtime's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The part of `verify_url` before the ID.
    pub receipts: ReceiptUrls,
    /// How long a held request waits for approvals.
    pub approval_ttl: Duration,
    /// Whether every tenant's decisions are committed without waiting for the disk.
    pub relaxed: bool,
    /// The interval of a stream's heartbeats.
    pub heartbeat: Duration,
}

/// The URLs of decisions' receipt pages. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ReceiptUrls(Arc<str>);

impl ReceiptUrls {
    /// Creates the URLs below the service's public URL.
    pub fn below(public_url: &str) -> Self {
        Self(public_url.into())
    }

    pub(super) fn url(&self, decision_id: &str) -> String {
        format!("{}/receipts/{decision_id}", self.0)
    }
}
