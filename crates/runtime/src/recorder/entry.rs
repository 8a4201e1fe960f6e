//! One decision on its way into the store.

use std::sync::Arc;

use authority_model::proto::approval::{ApprovalAuthority, Asker};
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use authority_api::idempotency::IdempotencyKey;
use authority_decision::{Reason, verdict::Claims};
use authority_evidence::PreparedFacts;

/// Everything that is stored of one decision, and where to say what became of it.
pub struct Entry {
    pub tenant_id: String,
    /// The revision of the tenant's authority that was decided on; the fence compares it.
    pub revision: i64,
    pub decision_id: String,
    pub subject: String,
    pub action: String,
    pub decision: &'static str,
    pub reason_code: Reason,
    pub evaluated_at: DateTime<Utc>,
    /// Permitted: when that ends. What is stored later permits nothing.
    pub valid_until: Option<DateTime<Utc>>,
    /// The signed bytes (RFC 8785).
    pub record: Vec<u8>,
    pub kid: Arc<str>,
    pub signature: [u8; 64],
    pub context: Vec<u8>,
    pub context_salt: [u8; 16],
    /// What the core saw beside the request.
    pub facts: Vec<u8>,
    pub facts_salt: [u8; 16],
    /// The gathered facts, which `facts` names by their digest.
    pub gathered: Arc<PreparedFacts>,
    pub hold: Option<Hold>,
    /// What the decision spends: it is stored only together with that.
    pub claims: Claims,
    pub key: Option<Keyed>,
    /// Commit without waiting for the disk, where the tenant chose so.
    pub relaxed: bool,
}

impl Entry {
    /// What it holds of its own, in bytes: context, facts and record grow with the request.
    pub(super) fn size(&self) -> usize {
        self.context.len() + self.facts.len() + self.record.len()
    }

    /// Nothing is stored with the decision but its facts.
    pub(super) fn is_alone(&self) -> bool {
        self.hold.is_none() && self.key.is_none() && self.claims.is_empty()
    }
}

/// The approval request that a held decision opens.
pub struct Hold {
    pub approval_id: String,
    pub request_digest: [u8; 32],
    pub needed: i32,
    pub roles: Vec<String>,
    pub expires_at: DateTime<Utc>,
    /// Under which it is held.
    pub authority: Option<ApprovalAuthority>,
    /// What holds it: an array of `ApprovalPolicy`, as JSON.
    pub policies: Value,
    /// Who asked: it is kept with the request, also where that was open already.
    pub asker: Asker,
    /// The address of a person who did.
    pub asker_email: Option<String>,
    /// Nobody whom the tenant has registered could approve it.
    pub nobody_eligible: bool,
}

/// An idempotency key, and how to write the answer that is kept under it.
pub struct Keyed {
    pub key: IdempotencyKey,
    /// The answer's bytes, given the approval request that the decision waits for.
    pub answer: Answer,
}

/// Writes an answer's bytes, given an approval request's id.
pub(crate) type Answer = Box<dyn Fn(Option<&str>) -> Vec<u8> + Send + Sync>;

/// What became of an entry.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Committed.
    Stored { approval_id: Option<String> },
    /// Not stored: the tenant's authority has moved on to this revision. Gather and decide again.
    Stale { revision: i64 },
    /// Not stored: by the database's clock what was permitted is over, or it was decided at another
    /// time. Decide again.
    Late,
    /// Not stored: what it would spend is spent. Look at what is left and decide again.
    Spent,
    /// Not stored: another has the idempotency key, or is about to. Look its answer up.
    KeyTaken,
    /// Not stored: the database does not answer, or refused this row.
    Failed,
}

/// An entry in the queue.
pub(super) struct Queued {
    pub(super) entry: Entry,
    pub(super) done: Done,
}

/// Where to say what became of an entry, and its room in the queue until then.
pub(super) struct Done {
    pub(super) sender: oneshot::Sender<Outcome>,
    pub(super) _room: OwnedSemaphorePermit,
}

impl Done {
    /// Nobody waits for the outcome any more.
    pub(super) fn is_left(&self) -> bool {
        self.sender.is_closed()
    }

    /// The outcome comes back where the caller has gone.
    pub(super) fn send(self, outcome: Outcome) -> Result<(), Outcome> {
        self.sender.send(outcome)
    }
}
