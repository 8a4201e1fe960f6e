//! A decision in the recorder's queue.

use std::sync::Arc;

use authority_ids::{ApprovalId, DecisionId, TenantId};
use authority_model::proto::approval::{ApprovalAuthority, Asker};
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::oneshot;

use super::super::queue::Place;
use authority_api::idempotency::IdempotencyKey;
use authority_decision::{Reason, verdict::Claims};
use authority_evidence::PreparedFacts;

/// Everything that is stored for one decision.
pub struct Entry {
    pub tenant_id: TenantId,
    /// The tenant's revision that it was decided on; the fence compares it.
    pub revision: i64,
    pub decision_id: DecisionId,
    pub subject: String,
    pub action: String,
    pub decision: &'static str,
    pub reason_code: Reason,
    /// What its event says, a [`DecisionEvent`] as JSON, if anyone in the tenant takes those.
    ///
    /// [`DecisionEvent`]: authority_core::decision_event::DecisionEvent
    pub event: Option<String>,
    pub evaluated_at: DateTime<Utc>,
    /// When the permission expires, if there is one. A decision stored later permits nothing.
    pub valid_until: Option<DateTime<Utc>>,
    /// The signed bytes (RFC 8785).
    pub record: Vec<u8>,
    pub kid: Arc<str>,
    pub signature: [u8; 64],
    pub context: Vec<u8>,
    pub context_salt: [u8; 16],
    /// The facts besides the request.
    pub facts: Vec<u8>,
    pub facts_salt: [u8; 16],
    /// The gathered facts, which `facts` refers to by digest.
    pub gathered: Arc<PreparedFacts>,
    pub hold: Option<Hold>,
    /// The ready approval that it waits for, instead of opening a request.
    pub ready: Option<String>,
    /// What the decision spends, in the same transaction.
    pub claims: Claims,
    pub key: Option<Keyed>,
    /// Commit without waiting for the disk, if the tenant chose that.
    pub relaxed: bool,
}

impl Entry {
    /// Whether only the decision and its facts are stored.
    pub(super) fn has_no_other_rows(&self) -> bool {
        self.hold.is_none() && self.ready.is_none() && self.key.is_none() && self.claims.is_empty()
    }

    /// Whether the result depends on approvals or counters at the time of storing.
    pub(super) fn is_competing(&self) -> bool {
        let stale = self.hold.as_ref().is_some_and(|hold| !hold.stale.is_empty());
        stale || self.ready.is_some() || !self.claims.is_empty()
    }

    /// Whether storing it writes to the outbox of events.
    pub(super) fn is_an_event(&self) -> bool {
        self.event.is_some() || self.hold.is_some()
    }
}

/// The approval request that a held decision opens.
pub struct Hold {
    pub approval_id: ApprovalId,
    pub request_digest: [u8; 32],
    pub needed: i32,
    pub roles: Vec<String>,
    pub expires_at: DateTime<Utc>,
    /// The digest of the held request.
    pub authority: Option<ApprovalAuthority>,
    /// The policies that hold it: an array of `ApprovalPolicy`, as JSON.
    pub policies: Value,
    /// What of reality holds it: an array of `ApprovalReality`, as JSON.
    pub reality: Value,
    /// The asker, who is added to the approval request even if that was already open.
    pub asker: Asker,
    /// The asker's e-mail address, for a person.
    pub asker_email: Option<String>,
    /// No person registered in the tenant could approve it.
    pub nobody_eligible: bool,
    /// The approvals of the question that no longer suffice. They become void when another request opens.
    pub stale: Vec<Stale>,
    /// For how many seconds the tenant lets a decline count, if it sets that.
    pub declined_for: Option<u32>,
    /// The most requests that the subject may have pending.
    pub limit: u32,
}

/// An approval that no longer suffices for its question.
#[derive(Clone, Debug)]
pub struct Stale {
    pub id: String,
    /// Why, for people.
    pub reason: String,
}

/// An idempotency key, and how to encode the response that is stored under it.
pub struct Keyed {
    pub key: IdempotencyKey,
    /// The response's bytes, given the approval request that the decision waits for.
    pub answer: Answer,
}

/// Encodes a response, given an approval request's id.
pub(crate) type Answer = Box<dyn Fn(Option<&str>) -> Vec<u8> + Send + Sync>;

/// The outcome of an entry.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Committed.
    Stored { approval_id: Option<String> },
    /// Not stored: the tenant's authority has changed, to this revision. Gather and decide again.
    Stale { revision: i64 },
    /// Not stored: by the database's clock the permission has expired, or the time of the decision
    /// is wrong. Decide again.
    Late,
    /// Not stored: its approval or counter is spent, or its question has been answered. Read that and decide again.
    Spent,
    /// Not stored: its subject has reached the tenant's limit of pending requests. Decide again with that fact.
    Full { pending: u32 },
    /// Not stored: another request has claimed the idempotency key. Look up its response.
    KeyTaken,
    /// Not stored: the database is unavailable, or refused this row.
    Failed,
}

/// An entry in the queue.
pub(super) struct Queued {
    pub(super) entry: Entry,
    pub(super) done: Done,
}

/// The channel for an entry's outcome, and the place of its call until then.
pub(super) struct Done {
    pub(super) sender: oneshot::Sender<Outcome>,
    pub(super) _place: Arc<Place>,
}

impl Done {
    /// Nobody waits for the outcome any more.
    pub(super) fn is_left(&self) -> bool {
        self.sender.is_closed()
    }

    /// Returns the outcome if the caller is gone.
    pub(super) fn send(self, outcome: Outcome) -> Result<(), Outcome> {
        self.sender.send(outcome)
    }
}
