//! A request that would be held, and the verdict on it.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::{facts::RecordingSettings, recorder::Stale};
use authority_api::identity::Caller;
use authority_core::graph::TenantHandle;
use authority_decision::{Facts, Gathered, Request, Verdict};

/// A request that would be held.
#[derive(Clone, Copy)]
pub(super) struct Holding<'a> {
    pub(super) caller: &'a Caller,
    pub(super) handle: Option<&'a TenantHandle>,
    pub(super) request: &'a Request,
    pub(super) gathered: &'a Arc<Gathered>,
    pub(super) recording: RecordingSettings,
    /// How many requests its subject has pending, if the recorder refused to open another.
    pub(super) pending: Option<u32>,
    pub(super) at: DateTime<Utc>,
}

/// A verdict with the facts that it is recorded with.
pub(super) struct Judged {
    /// The request with the ready approval that it claims, if it does.
    pub(super) citing: Option<Request>,
    pub(super) seen: Facts,
    pub(super) verdict: Verdict,
    /// The ready approval that a hold names, instead of opening a request.
    pub(super) ready: Option<String>,
    /// The approvals of the question that no longer suffice.
    pub(super) stale: Vec<Stale>,
}

impl Judged {
    pub(super) fn new(seen: Facts, verdict: Verdict) -> Self {
        Self { citing: None, seen, verdict, ready: None, stale: Vec::new() }
    }
}
