//! The pipeline that every operation shares: gather, decide, record, answer.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};

use super::{
    Runtime,
    asking::Asking,
    idempotency::IdempotencyKey,
    own_acts::Seen,
    recorder::{Entry, Key, Outcome},
    smallest::Denied,
};
use authority_api::{
    error::{ApiError, ErrorCode},
    identity::Caller,
};
use authority_core::{
    graph::{self, TenantHandle},
    keys::Purpose,
    spending::CounterQuery,
    store::{self, Db, SERVICE, Scope},
};
use authority_crypto::random;
use authority_decision::{Decision, Facts, Gathered, Request, Verdict, remedy::Remedy};
use authority_evidence::{self as evidence, Asked, PreparedFacts, Recorded};

/// What an API key must hold to have decisions made.
const SCOPE: &str = "runtime:write";
/// How often a decision is taken again when the tenant's authority moves under it.
const ROUNDS: usize = 3;

/// A decision that was reached and committed.
#[derive(Clone)]
pub struct Decided {
    pub verdict: Verdict,
    pub decision_id: String,
    pub record_digest: [u8; 32],
    pub kid: Arc<str>,
    pub signature: [u8; 64],
    pub revision: u32,
    pub evaluated_at: DateTime<Utc>,
    /// The approval request that a held decision waits for.
    pub approval_id: Option<String>,
    pub verify_url: String,
    /// Who asked, where it is held.
    pub asking: Option<Asking>,
    /// With `explain`, of a denial. It is told and not recorded.
    pub smallest_change: Option<Remedy>,
}

/// How a tenant's decisions are recorded.
#[derive(Clone, Copy, Default)]
pub(super) struct Recording {
    /// Without waiting for the disk.
    pub(super) relaxed: bool,
    /// How long a held request waits for its approvals, where the tenant says so itself.
    pub(super) approval_ttl: Option<Duration>,
    /// Requests take what stands ready for them without citing it.
    cites_ready: bool,
}

/// How a request came out.
pub(super) enum Reached {
    Decided(Box<Decided>),
    /// Another request with the same idempotency key was faster.
    KeyTaken,
}

impl Runtime {
    /// Decides on present authority and answers once the record is committed.
    ///
    /// # Errors
    /// `unavailable` when authority is too old, moves faster than it can be followed, or the record
    /// cannot be committed: nothing is permitted then.
    pub(super) async fn decide(
        &self,
        operation: &'static str,
        caller: &Caller,
        request: &Request,
        key: Option<&IdempotencyKey>,
    ) -> Result<Reached, ApiError> {
        // Never the caller's key: a record is shown to others, and keys name invoices and people.
        let nonce = hex::encode(random::<16>().map_err(ApiError::from)?);
        let signer = self.0.keys.signer(Purpose::Evidence);
        let mut revision = request.at_least_revision.unwrap_or_default();
        for _ in 0..ROUNDS {
            let handle = self.cell_at(request, revision).await?;
            let at = self.0.clock.now();
            let (mut facts, recording) = self.gather(handle.as_ref(), request)?;
            self.credential_holds(caller, SCOPE, Some(&request.subject), at)?;
            let counting = self.counting(Some(caller), handle.as_ref(), request, &facts.gathered);
            if let Some(counting) = &counting {
                facts = counting.in_facts(facts, request)?;
            }
            let mut seen = self.load_counters_and_approval(request, &facts.gathered, at).await?;
            let mut verdict = self.decide_on(request, &mut seen, counting.as_ref(), at);
            let mut seen = seen.facts;
            let ready;
            let mut request = request;
            let waits = request.approval_id.is_none() && verdict.approvals_needed.is_some();
            if recording.cites_ready
                && waits
                && let Some(citing) =
                    self.citing_ready(caller, handle.as_ref(), request, &facts.gathered, at).await?
            {
                (ready, seen, verdict) = (citing.request, citing.seen, citing.verdict);
                request = &ready;
            }
            let recorded = evidence::record(
                &Asked {
                    operation,
                    request,
                    facts: &facts,
                    spent: &seen.spent,
                    approval: seen.approval.as_ref(),
                    verdict: &verdict,
                    evaluated_at: at,
                    nonce: &nonce,
                },
                &signer,
            )?;
            let mut decided = self.decided(verdict, &recorded, &facts, at);
            decided.asking = self.asking(caller, handle.as_ref(), request, &decided.verdict);
            if request.explain && decided.verdict.decision == Decision::Deny {
                // Now and not later: what a key keeps of the answer is written with the record.
                let (request, policies) = (request.clone(), Arc::default());
                let denied = Denied { request, facts: seen, at, handle, policies };
                decided.smallest_change = self.smallest_change(denied).await;
            }
            let entry = self.entry(request, recorded, facts, &decided, key, recording)?;
            match self.0.recorder.record(entry).await {
                Outcome::Stored { approval_id } => {
                    if decided.verdict.valid_until.is_some_and(|end| end <= self.0.clock.now()) {
                        // It is on record, and nobody may act on it any more.
                        break;
                    }
                    decided.approval_id = approval_id;
                    count(&decided.verdict);
                    return Ok(Reached::Decided(Box::new(decided)));
                }
                Outcome::Stale { revision: present } => revision = present,
                Outcome::Spent | Outcome::Late => {}
                Outcome::KeyTaken => return Ok(Reached::KeyTaken),
                Outcome::Failed => break,
            }
        }
        Err(ApiError::plain(ErrorCode::Unavailable))
    }

    /// The tenant's graph at this revision or later. A revision that the caller asks for and that the
    /// database does not have either is the caller's fault; one that only this node lacks is not.
    pub(super) async fn cell_at(
        &self,
        request: &Request,
        wanted: i64,
    ) -> Result<Option<TenantHandle>, ApiError> {
        let found = self.0.graph.tenant_at(&request.tenant_id, wanted).await;
        let asked = request.at_least_revision.unwrap_or_default();
        if asked > 0 && matches!(found, Err(graph::Error::Behind { .. })) {
            let (scope, tenant_id) = (Scope::service(), request.tenant_id.clone());
            let read = self.0.store.read_tx(&scope, async move |db| {
                Ok::<_, store::Error>(graph::revision(db, &tenant_id).await?)
            });
            let present = read.await?;
            if present < asked {
                let problem =
                    format!("is beyond the revision that the tenant's authority has: {present}");
                return Err(ApiError::field("at_least_revision", problem));
            }
        }
        Ok(found?)
    }

    /// What the tenant's authority says of the request, and how its decisions are recorded. A tenant
    /// that is not there has no authority at all.
    pub(super) fn gather(
        &self,
        handle: Option<&TenantHandle>,
        request: &Request,
    ) -> Result<(Arc<PreparedFacts>, Recording), ApiError> {
        let Some(handle) = handle else {
            let nothing = PreparedFacts::new(Gathered::default(), request)?;
            return Ok((Arc::new(nothing), Recording::default()));
        };
        let graph = handle.read();
        let facts = self.0.cache.gather(&graph, request)?;
        let recording = Recording {
            relaxed: self.0.settings.relaxed || graph.profile.relaxed,
            approval_ttl: graph.profile.approval_ttl,
            cites_ready: graph.profile.cites_ready,
        };
        Ok((facts, recording))
    }

    /// The facts with what changes from call to call: counters, the approval cited. Only those who
    /// need them wait for the database.
    pub(super) async fn load_counters_and_approval(
        &self,
        request: &Request,
        gathered: &Arc<Gathered>,
        at: DateTime<Utc>,
    ) -> Result<Seen, ApiError> {
        let mut facts = Facts::new(Arc::clone(gathered));
        let wanted = CounterQuery::of(request, &facts.gathered, at).map_err(fault)?;
        let Some(wanted) = wanted else { return Ok(Seen { facts, cited: None }) };
        let scope = Scope { tenant: Some(request.tenant_id.clone()), actor: SERVICE.to_owned() };
        let read = async move |db: &mut Db| Ok::<_, store::Error>(wanted.read(db).await?);
        let (spent, cited) = self.0.store.read_tx(&scope, read).await?;
        facts.spent = spent;
        facts.approval = cited.as_ref().map(|cited| cited.approval.clone());
        Ok(Seen { facts, cited })
    }

    fn decided(
        &self,
        verdict: Verdict,
        recorded: &Recorded,
        facts: &PreparedFacts,
        at: DateTime<Utc>,
    ) -> Decided {
        Decided {
            verify_url: self.receipt_url(&recorded.decision_id),
            decision_id: recorded.decision_id.clone(),
            record_digest: recorded.digest,
            kid: Arc::clone(&recorded.kid),
            signature: recorded.signature,
            revision: facts.revision(),
            evaluated_at: at,
            approval_id: None,
            asking: None,
            smallest_change: None,
            verdict,
        }
    }

    /// Where the receipt page of a decision is.
    pub(super) fn receipt_url(&self, decision_id: &str) -> String {
        format!("{}/receipts/{decision_id}", self.0.settings.public_url)
    }

    fn entry(
        &self,
        request: &Request,
        recorded: Recorded,
        facts: Arc<PreparedFacts>,
        decided: &Decided,
        key: Option<&IdempotencyKey>,
        recording: Recording,
    ) -> Result<Entry, ApiError> {
        let claims = decided.verdict.claims.clone();
        let hold = self.hold(request, &facts.gathered, decided, recording)?;
        let key = key.map(|key| kept(key, decided));
        Ok(Entry {
            tenant_id: request.tenant_id.clone(),
            revision: facts.gathered.revision,
            decision_id: recorded.decision_id,
            subject: request.subject.clone(),
            action: request.action.clone(),
            decision: decided.verdict.decision.word(),
            reason_code: decided.verdict.reason_code,
            evaluated_at: decided.evaluated_at,
            valid_until: decided.verdict.valid_until,
            record: recorded.record,
            kid: recorded.kid,
            signature: recorded.signature,
            context: recorded.context,
            context_salt: recorded.context_salt,
            facts: recorded.facts,
            facts_salt: recorded.facts_salt,
            gathered: facts,
            // What is promised once is never given up to a crash of the database.
            relaxed: recording.relaxed && hold.is_none() && key.is_none() && claims.is_empty(),
            claims,
            hold,
            key,
        })
    }
}

/// The key with the answer that its operation would give, whichever approval the decision waits for.
fn kept(given: &IdempotencyKey, decided: &Decided) -> Key {
    let (decided, answer) = (decided.clone(), given.answer);
    Key {
        scope: given.scope,
        key: given.key.clone(),
        caller: given.caller.clone(),
        request_sha256: given.request_sha256,
        answer: Box::new(move |approval_id| {
            let approval_id = approval_id.map(str::to_owned);
            answer(&Decided { approval_id, ..decided.clone() })
        }),
    }
}

fn count(verdict: &Verdict) {
    metrics::counter!(
        "authority_decisions_total",
        "decision" => verdict.decision.word(),
        "reason" => verdict.reason_code.label()
    )
    .increment(1);
}

/// A part that does not serialise is a fault of this program: logged, and no decision.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn fault(error: serde_json::Error) -> ApiError {
    tracing::error!(%error, "a decision's part does not serialise");
    ApiError::plain(ErrorCode::Internal)
}
