//! A request that would be held, and the verdict on it.

use std::sync::Arc;

use authority_ids::ApprovalRef;
use chrono::{DateTime, Utc};

use super::{facts::RecordingSettings, recorder::InsufficientApproval};
use authority_api::identity::Caller;
use authority_decision::{Facts, Gathered, Request, Verdict};
use authority_graph::TenantHandle;

/// A request that would be held.
#[derive(Clone, Copy)]
pub(super) struct Holding<'a> {
    pub(super) caller: &'a Caller,
    pub(super) handle: Option<&'a TenantHandle>,
    pub(super) request: &'a Request,
    pub(super) gathered: &'a Arc<Gathered>,
    pub(super) recording: RecordingSettings,
    /// The number of the subject's pending requests. Set if the recorder refused another.
    pub(super) pending: Option<u32>,
    pub(super) at: DateTime<Utc>,
}

/// A verdict with the facts that are recorded with it.
pub(super) struct Judged {
    /// The request with the ready approval that is used although it was not cited, if any.
    pub(super) citing: Option<Request>,
    pub(super) seen: Facts,
    pub(super) verdict: Verdict,
    /// An existing approval, ready for use, to which the held decision refers. If it is set, no new
    /// approval request is opened.
    pub(super) ready: Option<ApprovalRef>,
    /// Earlier approvals of the request that no longer suffice.
    pub(super) insufficient: Vec<InsufficientApproval>,
}

impl Judged {
    pub(super) fn new(seen: Facts, verdict: Verdict) -> Self {
        Self { citing: None, seen, verdict, ready: None, insufficient: Vec::new() }
    }
}
