//! A decision in the recorder's queue.

use std::sync::Arc;

use authority_ids::{ApprovalId, ApprovalRef, DecisionId, PrincipalRef, TenantId};
use authority_model::proto::approval::{ApprovalAuthority, Asker};
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::oneshot;

use super::super::queue::QueuePlace;
use authority_api::idempotency::IdempotencyKey;
use authority_decision::{Reason, verdict::Claims};
use authority_evidence::PreparedFacts;

/// Everything that is stored for one decision.
pub struct Entry {
    pub tenant_id: TenantId,
    /// The tenant's revision on which the decision was made. The fence compares it with the current
    /// revision.
    pub revision: i64,
    pub decision_id: DecisionId,
    pub subject: PrincipalRef,
    pub action: String,
    pub decision: &'static str,
    pub reason_code: Reason,
    /// The content of its event, a [`DecisionEvent`] as JSON. Set if a subscriber in the tenant
    /// selects such decisions.
    ///
    /// [`DecisionEvent`]: authority_ledger::decision_event::DecisionEvent
    pub event: Option<String>,
    pub evaluated_at: DateTime<Utc>,
    /// When the permission expires, if it does. A decision stored later has no effect.
    pub valid_until: Option<DateTime<Utc>>,
    /// The signed bytes (RFC 8785).
    pub record: Vec<u8>,
    pub kid: Arc<str>,
    pub signature: [u8; 64],
    pub context: Vec<u8>,
    pub context_salt: [u8; 16],
    /// The facts of the decision. They do not include the request.
    pub facts: Vec<u8>,
    pub facts_salt: [u8; 16],
    /// The gathered facts, which `facts` refers to by digest.
    pub gathered: Arc<PreparedFacts>,
    pub hold: Option<Hold>,
    /// The ready approval that the decision refers to, instead of opening an approval request.
    pub ready: Option<ApprovalRef>,
    /// The approvals and counters that the decision uses up, in the same transaction.
    pub claims: Claims,
    pub key: Option<Keyed>,
    /// Whether to commit without waiting for the disk.
    pub relaxed: bool,
}

impl Entry {
    /// Whether the entry writes no rows besides the decision, its facts and its event.
    pub(super) fn has_no_other_rows(&self) -> bool {
        self.hold.is_none() && self.ready.is_none() && self.key.is_none() && self.claims.is_empty()
    }

    /// Whether the result depends on approvals or counters at the time of storing.
    pub(super) fn is_competing(&self) -> bool {
        let voids = self.hold.as_ref().is_some_and(|hold| !hold.insufficient.is_empty());
        voids || self.ready.is_some() || !self.claims.is_empty()
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
    /// The authority that was used, with its actions and bounds.
    pub authority: Option<ApprovalAuthority>,
    /// The policies that hold the request: an array of `ApprovalPolicy`, as JSON.
    pub policies: Value,
    /// The reality findings that hold the request: an array of `ApprovalReality`, as JSON.
    pub reality: Value,
    /// The requester, who is added to the approval request even if it was already open.
    pub asker: Asker,
    /// The requester's e-mail address, if the requester is a person.
    pub asker_email: Option<String>,
    /// Whether no person registered in the tenant could approve the request.
    pub nobody_eligible: bool,
    /// Earlier approvals of the request that no longer suffice. They become void when a new
    /// approval request is opened.
    pub insufficient: Vec<InsufficientApproval>,
    /// The values by which the request is compared with others of the tenant.
    pub facts: Vec<ComparedFact>,
    /// The requester's own reason.
    pub justification: Option<String>,
    /// For how many seconds a decline is valid, if the tenant sets that.
    pub declined_for: Option<u32>,
    /// The maximum number of pending requests of the subject.
    pub limit: u32,
}

/// The code of a value that a request has for a declared role.
#[derive(Clone, Debug)]
pub struct ComparedFact {
    pub role: String,
    pub code: Vec<u8>,
}

/// An approval that does not suffice for its request any more.
#[derive(Clone, Debug)]
pub struct InsufficientApproval {
    pub id: ApprovalRef,
    /// The reason, for people.
    pub reason: String,
}

/// An idempotency key, and the encoding of the response that is stored under it.
pub struct Keyed {
    pub key: IdempotencyKey,
    /// The response's bytes, given the approval request that the decision waits for.
    pub answer: Answer,
}

/// Encodes a response, given an approval request's ID.
pub(crate) type Answer = Box<dyn Fn(Option<&ApprovalRef>) -> Vec<u8> + Send + Sync>;

/// The outcome of an entry.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Committed.
    Stored { approval_id: Option<ApprovalRef> },
    /// Not stored: the tenant's authority has changed to this revision. Gather and decide again.
    AuthorityChanged { revision: i64 },
    /// Not stored: by the database's clock, the decision is late. Its permission has expired, or
    /// its time differs too much. Decide again.
    Late,
    /// Not stored: another decision has used the approval or the rest of the counter, or people
    /// have answered the request. Decide again.
    Spent,
    /// Not stored: its subject has reached the tenant's limit of pending requests. Decide again
    /// with this number.
    Full { pending: u32 },
    /// Not stored: another request has claimed the idempotency key. Look up its response.
    KeyTaken,
    /// Not stored: the database is unavailable, or refused this row.
    Failed,
}

/// An entry in the queue.
pub(super) struct Queued {
    pub(super) entry: Entry,
    pub(super) done: OutcomeSender,
}

/// The channel for an entry's outcome, and the place of its call. The place is released when the
/// outcome is sent.
pub(super) struct OutcomeSender {
    pub(super) sender: oneshot::Sender<Outcome>,
    pub(super) _place: Arc<QueuePlace>,
}

impl OutcomeSender {
    /// Whether the caller has stopped waiting for the outcome.
    pub(super) fn is_left(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends the outcome. Returns it if the caller is gone.
    pub(super) fn send(self, outcome: Outcome) -> Result<(), Outcome> {
        self.sender.send(outcome)
    }
}
