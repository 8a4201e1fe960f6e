//! The pipeline that all operations share: gather, decide, record, answer.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tracing::Span;

use super::{
    cited::cited,
    compared::compared_facts,
    decided::{Decided, IncludedRecord},
    decision_key::DecisionKey,
    explainer::{Denied, Explainer},
    facts::{FactSource, RecordingSettings},
    fault::fault,
    holding::{Holding, Judged},
    queue::{DecisionQueue, QueuePlace},
    rates::DecisionRates,
    recorder::{Entry, Outcome, Recorder},
    requester::requester,
    settings::Settings,
    stage::Stage,
    turn::Turn,
};
use authority_api::{
    credentials::Credentials,
    error::{ApiError, ErrorCode},
    identity::Caller,
};
use authority_crypto::{Signer, hex, random};
use authority_decision::{
    Decision, Facts, Gathered, Request, Verdict, moment, remedy::Remedy, verdict::AuthorityKind,
};
use authority_evidence::{self as evidence, DecidedRequest, PreparedFacts, Recorded};
use authority_graph::TenantHandle;
use authority_ids::DecisionId;
use authority_keys::{Keys, Purpose};
use authority_ledger::decision_event::DecisionEvent;
use authority_process::clock::Clock;

/// The scope that an API key needs for decisions.
pub(super) const SCOPE: &str = "runtime:write";
/// The maximum number of attempts to decide. An attempt fails if, for example, the tenant's
/// authority changes before the decision is recorded.
const ROUNDS: usize = 3;

/// The outcome of a request.
pub(super) enum Reached {
    Decided(Box<Decided>),
    /// Another request with the same idempotency key came first.
    KeyTaken,
}

/// Makes and records decisions.
///
/// Futures that few decisions need are boxed. Otherwise, every call's future, which is moved to the
/// heap as a whole, would have room for them.
pub(super) struct Decider {
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) keys: Keys,
    pub(super) facts: FactSource,
    pub(super) credentials: Credentials,
    pub(super) queue: DecisionQueue,
    pub(super) rates: DecisionRates,
    pub(super) recorder: Recorder,
    pub(super) explainer: Explainer,
}

impl Decider {
    /// Decides on current authority and returns once the record is committed. `place` is the call's
    /// place in the queue.
    ///
    /// # Errors
    /// `unavailable` if authority is too old or changes too often, or the record can't be
    /// committed. The request is then not permitted.
    #[tracing::instrument(
        level = "debug",
        skip_all,
        fields(operation = operation, tenant.id = request.tenant().as_str(), decision.id, decision, reason_code)
    )]
    pub(super) async fn decide(
        &self,
        operation: &'static str,
        caller: &Caller,
        request: &Request,
        key: Option<&DecisionKey>,
        place: &Arc<QueuePlace>,
        turn: &mut Option<Turn>,
    ) -> Result<Reached, ApiError> {
        let (nonce, signer) = (nonce()?, self.keys.signer(Purpose::Evidence));
        let mut revision = request.at_least_revision.unwrap_or_default();
        let mut pending = None;
        for _ in 0..ROUNDS {
            let handle = self.facts.tenant_at(request, revision).await?;
            let at = self.clock.now();
            let gather = || self.facts.gather(handle.as_ref(), request);
            let (mut facts, mut recording) = Stage::Gather.time(gather)?;
            recording.relaxed |= self.settings.relaxed;
            self.credentials.check(caller, SCOPE, Some(&request.subject), at)?;
            let counting =
                self.facts.counting(Some(caller), handle.as_ref(), request, &facts.gathered);
            if let Some(counting) = &counting {
                facts = counting.in_facts(facts, request)?;
            }
            let load = self.facts.load_counters_and_approval(request, &facts.gathered, at);
            let mut seen = Stage::Load.wait(load).await?;
            let decide = || self.facts.decide_on(request, &mut seen, counting.as_ref(), at);
            let verdict = Stage::Decide.time(decide);
            let (handle, gathered) = (handle.as_ref(), &facts.gathered);
            let cited_approval = cited(request, &seen.facts, at);
            let judged = if verdict.decision == Decision::RequireApproval {
                let holding = Holding { caller, handle, request, gathered, recording, pending, at };
                Box::pin(self.judge_held(holding, seen.facts, verdict)).await?
            } else {
                Judged::new(seen.facts, verdict)
            };
            let Judged { citing, seen, verdict, ready, insufficient } = judged;
            let request = citing.as_ref().unwrap_or(request);
            let asked = asked(operation, request, &facts, &seen, &verdict, at, &nonce);
            let recorded = signed(&asked, &signer)?;
            let mut decided = self.decided(request, verdict, &recorded, &facts, at);
            (decided.cited_approval, decided.insufficient) = (cited_approval, insufficient);
            if ready.is_none() {
                let graph = &self.facts.graph;
                decided.requester = requester(graph, caller, handle, request, &decided.verdict);
                decided.facts = compared_facts(&self.keys, handle, request, &decided.verdict);
            }
            decided.ready_approval_id = ready;
            if request.explain && decided.verdict.decision == Decision::Deny {
                // The response for the idempotency key is written with the record.
                decided.smallest_change = self.smallest_change(request, seen, at, handle).await;
            }
            let entry = self.entry(request, recorded, facts, &decided, key, recording)?;
            if let Some(turn) = turn.as_mut().filter(|_| !entry.claims.is_empty()) {
                turn.come().await;
            }
            let recording = self.recorder.record(entry, Arc::clone(place), turn.as_ref());
            match Stage::Record.wait(recording).await {
                Outcome::Stored { approval_id } => {
                    if decided.verdict.valid_until.is_some_and(|end| end <= self.clock.now()) {
                        // The decision is recorded but not returned, because its permission has
                        // already expired.
                        break;
                    }
                    decided.approval_id = approval_id;
                    tell(&decided);
                    return Ok(Reached::Decided(Box::new(decided)));
                }
                Outcome::AuthorityChanged { revision: present } => revision = present,
                Outcome::Full { pending: present } => pending = Some(present),
                Outcome::Spent | Outcome::Late => {}
                Outcome::KeyTaken => {
                    *turn = None;
                    return Ok(Reached::KeyTaken);
                }
                Outcome::Failed => break,
            }
            turn.iter_mut().for_each(Turn::again);
        }
        Err(ApiError::plain(ErrorCode::Unavailable))
    }

    fn decided(
        &self,
        request: &Request,
        verdict: Verdict,
        recorded: &Recorded,
        facts: &PreparedFacts,
        at: DateTime<Utc>,
    ) -> Decided {
        Decided {
            verify_url: self.settings.receipts.url(recorded.decision_id.as_str()),
            decision_id: recorded.decision_id.clone(),
            record_digest: recorded.digest,
            kid: Arc::clone(&recorded.kid),
            signature: recorded.signature,
            revision: facts.revision(),
            evaluated_at: at,
            approval_id: None,
            requester: None,
            ready_approval_id: None,
            cited_approval: None,
            insufficient: Vec::new(),
            facts: Vec::new(),
            included: request.include_record.then(|| included(recorded)),
            smallest_change: None,
            verdict,
        }
    }

    /// Explains a denial. Requests that were declined, or reach the limit of pending requests, get
    /// no explanation, because it might show how to bypass the people who decide.
    async fn smallest_change(
        &self,
        request: &Request,
        facts: Facts,
        at: DateTime<Utc>,
        handle: Option<&TenantHandle>,
    ) -> Option<Remedy> {
        if facts.declined.is_some() || facts.open_requests.is_some() {
            return None;
        }
        let (request, handle, policies) = (request.clone(), handle.cloned(), Arc::default());
        let denied = Denied { request, facts, at, handle, policies };
        Box::pin(self.explainer.smallest_change(denied)).await
    }

    fn entry(
        &self,
        request: &Request,
        recorded: Recorded,
        facts: Arc<PreparedFacts>,
        decided: &Decided,
        key: Option<&DecisionKey>,
        recording: RecordingSettings,
    ) -> Result<Entry, ApiError> {
        let claims = decided.verdict.claims.clone();
        let ready = decided.ready_approval_id.clone();
        let hold = self.hold(request, &facts.gathered, decided, recording)?;
        let key = key.map(|key| key.keyed(decided));
        let told = recording.events.include(decided.verdict.decision);
        let event = told.then(|| event(&recorded.decision_id, &facts.gathered, decided));
        Ok(Entry {
            tenant_id: request.tenant().clone(),
            revision: facts.gathered.revision,
            decision_id: recorded.decision_id,
            subject: request.subject.clone(),
            action: request.action.clone(),
            decision: decided.verdict.decision.word(),
            reason_code: decided.verdict.reason_code,
            event: event.transpose().map_err(fault)?,
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
            // A response under an idempotency key must survive a crash of the database.
            relaxed: recording.relaxed
                && hold.is_none()
                && ready.is_none()
                && key.is_none()
                && claims.is_empty(),
            claims,
            hold,
            ready,
            key,
        })
    }
}

/// Collects the data for the record of a decision.
fn asked<'a>(
    operation: &'a str,
    request: &'a Request,
    facts: &'a PreparedFacts,
    seen: &'a Facts,
    verdict: &'a Verdict,
    evaluated_at: DateTime<Utc>,
    nonce: &'a str,
) -> DecidedRequest<'a> {
    DecidedRequest {
        operation,
        request,
        facts,
        spent: &seen.spent,
        approval: seen.approval.as_ref(),
        declined: seen.declined.as_ref(),
        open_requests: seen.open_requests,
        zones: &seen.zones,
        verdict,
        evaluated_at,
        nonce,
    }
}

/// Returns the random part that makes a record's digest unique. The caller's idempotency key is not
/// used, because others see records, and keys may name invoices and people.
fn nonce() -> Result<String, ApiError> {
    Ok(hex(&random::<16>().map_err(ApiError::from)?))
}

/// Returns the record with its digest and signature.
fn signed(asked: &DecidedRequest<'_>, signer: &Signer) -> Result<Recorded, evidence::Error> {
    let signing = tracing::debug_span!("sign");
    signing.in_scope(|| Stage::Sign.time(|| evidence::record(asked, signer)))
}

/// Returns the record for the response.
fn included(recorded: &Recorded) -> IncludedRecord {
    let record = String::from_utf8_lossy(&recorded.record).into_owned();
    IncludedRecord { record, context_salt: recorded.context_salt }
}

/// Returns the content of the decision's event, as JSON.
fn event(
    decision_id: &DecisionId,
    gathered: &Gathered,
    decided: &Decided,
) -> serde_json::Result<String> {
    let Decided { verdict, evaluated_at, .. } = decided;
    let authority = verdict.authority.as_ref();
    let delegation = authority.filter(|used| used.kind == AuthorityKind::Delegation);
    serde_json::to_string(&DecisionEvent {
        decision_id: decision_id.as_str().into(),
        decision: verdict.decision.word().into(),
        reason_code: verdict.reason_code.word().into(),
        evaluated_at: *evaluated_at,
        principal_id: gathered.subject.as_ref().map(|subject| subject.id.as_str().into()),
        tool_id: verdict.tool_id.as_deref().map(Into::into),
        authority_kind: authority.map(|used| used.kind.word().into()),
        delegation_id: delegation.map(|used| used.id.as_str().into()),
        approval_id: verdict.claims.approval_id.as_deref().map(Into::into),
        valid_until: verdict.valid_until.map(|until| moment::text(until).into()),
    })
}

/// Counts the decision, and adds it to the tracing span.
fn tell(decided: &Decided) {
    count(&decided.verdict);
    let span = Span::current();
    span.record("decision.id", decided.decision_id.as_str());
    span.record("decision", decided.verdict.decision.word());
    span.record("reason_code", decided.verdict.reason_code.label());
    tracing::debug!("decided");
}

fn count(verdict: &Verdict) {
    metrics::counter!(
        "authority_decisions_total",
        "decision" => verdict.decision.word(),
        "reason" => verdict.reason_code.label()
    )
    .increment(1);
}
