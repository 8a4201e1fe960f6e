//! The response of each operation for a decision.

use authority_model::{
    proto::runtime::{
        ApprovalsNeeded, AuthorityUsed, AuthorizeResponse, Budget, Decision as Word,
        EvaluateDecisionResponse, EvaluateResponse, EvidencePack, EvidenceReference, Finding,
        FindingStatement, FurtherChange, ObservedPolicy, Outcome, RecordedContext, Signature,
        SimulateDecisionResponse, SmallestChange, Stage,
    },
    wire::Json,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{
    budgets::{budget, exceeded},
    decided::Decided,
    requester::NOBODY,
};
use authority_decision::{
    Decision, Verdict,
    remedy::Remedy,
    trace::{PolicyStatement, StageTrace, TraceStep},
    verdict,
};
use authority_evidence::{digest_text, sealed};

/// Converts a decision to its word in the API.
pub(super) fn word(decision: Decision) -> i32 {
    let word = match decision {
        Decision::Allow => Word::Allow,
        Decision::AllowWithConstraints => Word::AllowWithConstraints,
        Decision::RequireApproval => Word::RequireApproval,
        Decision::Deny => Word::Deny,
    };
    word.into()
}

/// Parses a stored text that is a JSON object.
pub(super) fn object(text: &[u8]) -> Option<Json> {
    match serde_json::from_slice(text) {
        Ok(Value::Object(members)) => Some(Json(members)),
        _ => None,
    }
}

/// Returns a request's stored context with its salt, or `None` if it was erased.
pub(super) fn context(text: &[u8], salt: &[u8]) -> Option<RecordedContext> {
    let value = object(text)?;
    Some(RecordedContext { salt: STANDARD.encode(salt), value: Some(value) })
}

/// Builds a response. Members that are not arguments are the same in each.
macro_rules! response {
    ($decided:ident, $decision:ident, $($own:ident: $value:expr),*) => {
        Self {
            decision: word($decision),
            reason_code: $decided.verdict.reason_code.word().to_owned(),
            decision_id: String::from(&$decided.decision_id),
            evidence: Some(evidence($decided, $decision)),
            evidence_pack: Some(pack(&$decided.record_digest, &$decided.kid, &$decided.signature)),
            obligations: $decided.verdict.obligations.clone(),
            stop_conditions: $decided.verdict.stop_conditions.clone(),
            approval_id: $decided.approval_id.clone().map(Into::into),
            authority_revision: $decided.revision,
            valid_until: $decided.verdict.valid_until.map(Into::into),
            smallest_change: $decided.smallest_change.as_ref().and_then(smallest),
            tool_id: $decided.verdict.tool_id.clone().map(Into::into),
            eligible: eligible($decided),
            ready_approval_id: $decided.ready_approval_id.clone().map(Into::into),
            cited_approval: $decided.cited_approval.clone(),
            exceeded_budgets: exceeded_budgets(&$decided.verdict),
            record: $decided.included.as_ref().map(|included| included.record.clone()),
            context_salt: $decided.included.as_ref().map(|own| STANDARD.encode(own.context_salt)),
            $($own: $value),*
        }
    };
}

/// The evaluate endpoint has no `allow_with_constraints`. It returns `allow`, with the constraints
/// in other fields.
impl From<&Decided> for EvaluateResponse {
    fn from(decided: &Decided) -> Self {
        let decision = decided.verdict.decision.folded();
        response!(
            decided,
            decision,
            verify_url: decided.verify_url.clone(),
            trace: stages(&decided.verdict)
        )
    }
}

impl From<&Decided> for AuthorizeResponse {
    fn from(decided: &Decided) -> Self {
        let decision = decided.verdict.decision;
        response!(
            decided,
            decision,
            reasons: reasons(&decided.verdict),
            trace: stages(&decided.verdict)
        )
    }
}

impl From<&Decided> for EvaluateDecisionResponse {
    fn from(decided: &Decided) -> Self {
        let decision = decided.verdict.decision;
        response!(
            decided,
            decision,
            reasons: reasons(&decided.verdict),
            verify_url: decided.verify_url.clone(),
            evaluated_at: Some(decided.evaluated_at.into()),
            stages: stages(&decided.verdict)
        )
    }
}

/// Returns `none` if no user could approve the held decision.
fn eligible(decided: &Decided) -> Option<String> {
    let requester = decided.requester.as_ref()?;
    requester.nobody_eligible.then(|| NOBODY.to_owned())
}

fn evidence(decided: &Decided, decision: Decision) -> EvidenceReference {
    EvidenceReference {
        kind: "audit_reference".to_owned(),
        id: String::from(&decided.decision_id),
        outcome: decision.word().to_owned(),
        reason: decided.verdict.reason_code.word().to_owned(),
        verify_url: decided.verify_url.clone(),
    }
}

/// Returns the proof that belongs to a decision.
pub(super) fn pack(digest: &[u8; 32], kid: &str, signature: &[u8]) -> EvidencePack {
    EvidencePack { record_digest: digest_text(digest), signature: Some(signed(kid, signature)) }
}

/// Returns a signature over canonical JSON.
pub(super) fn signed(kid: &str, signature: &[u8]) -> Signature {
    Signature {
        alg: "Ed25519".to_owned(),
        canonicalization: "RFC8785".to_owned(),
        kid: kid.to_owned(),
        value: STANDARD.encode(signature),
    }
}

fn reasons(verdict: &Verdict) -> Vec<String> {
    verdict.reasons.iter().map(|reason| reason.word().to_owned()).collect()
}

pub(super) fn stages(verdict: &Verdict) -> Vec<Stage> {
    verdict.trace.iter().flatten().map(stage).collect()
}

fn stage(trace: &StageTrace) -> Stage {
    Stage {
        stage: trace.stage.word().to_owned(),
        outcome: trace.outcome.word().to_owned(),
        reason_code: trace.reason_code.map(|code| code.word().to_owned()),
        findings: trace.steps.iter().map(finding).collect(),
    }
}

fn exceeded_budgets(verdict: &Verdict) -> Vec<Budget> {
    verdict.exceeded_budgets.iter().map(budget).collect()
}

fn finding(step: &TraceStep) -> Finding {
    Finding {
        check: format!("{} {}", step.kind, step.id).trim_end().to_owned(),
        outcome: step.outcome.word().to_owned(),
        reason_code: step.reason_code.map(|code| code.word().to_owned()),
        detail: (!step.detail.is_empty()).then(|| step.detail.clone()),
        exceeded: step.exceeded.iter().map(exceeded).collect(),
        kind: step.kind.clone(),
        id: match &step.statement {
            Some(statement) => Some(statement.policy_id.clone().into()),
            None => Some(step.id.clone()).filter(|id| !id.is_empty()),
        },
        statement: step.statement.as_ref().map(statement),
        observed: step.observed.as_deref().map(|observed| ObservedPolicy {
            policy_id: observed.policy_id.clone().into(),
            version: observed.version.try_into().unwrap_or_default(),
            decision: word(observed.decision),
            reason_code: observed.reason_code.word().to_owned(),
            would_change: observed.would_change,
            statements: observed.statements.iter().map(statement).collect(),
        }),
    }
}

fn statement(statement: &PolicyStatement) -> FindingStatement {
    FindingStatement {
        policy_id: statement.policy_id.clone().into(),
        id: statement.id.clone(),
        advice: statement.advice.clone(),
    }
}

/// Returns an unrecorded verdict, and whether it differs from the earlier outcome.
pub(super) fn simulated(
    verdict: &Verdict,
    before: &sealed::Outcome,
    at: DateTime<Utc>,
) -> SimulateDecisionResponse {
    SimulateDecisionResponse {
        decision: word(verdict.decision),
        reason_code: verdict.reason_code.word().to_owned(),
        reasons: reasons(verdict),
        obligations: verdict.obligations.clone(),
        stop_conditions: verdict.stop_conditions.clone(),
        approvals_needed: verdict.approvals_needed.as_ref().map(needed),
        authority: verdict.authority.as_ref().map(|used| AuthorityUsed {
            kind: used.kind.word().to_owned(),
            id: used.id.clone(),
            chain: used.chain.iter().map(String::from).collect(),
        }),
        stages: stages(verdict),
        advice: verdict.advice.clone(),
        would_change: sealed::Outcome::from(verdict) != *before,
        before: Some(outcome(before)),
        evaluated_at: Some(at.into()),
        valid_until: verdict.valid_until.map(Into::into),
        tool_id: verdict.tool_id.clone().map(Into::into),
        exceeded_budgets: exceeded_budgets(verdict),
        ..SimulateDecisionResponse::default()
    }
}

pub(super) fn outcome(outcome: &sealed::Outcome) -> Outcome {
    Outcome {
        decision: word(outcome.decision),
        reason_code: outcome.reason_code.word().to_owned(),
        obligations: outcome.obligations.clone(),
        stop_conditions: outcome.stop_conditions.clone(),
        approvals_needed: outcome.approvals_needed.as_ref().map(needed),
    }
}

fn needed(needed: &verdict::ApprovalsNeeded) -> ApprovalsNeeded {
    ApprovalsNeeded { count: needed.count, roles: needed.roles.clone() }
}

/// Returns the first change and the decision after all changes. `further` has the other changes.
pub(super) fn smallest(remedy: &Remedy) -> Option<SmallestChange> {
    let (first, further) = remedy.changes.split_first()?;
    let also = further.iter().map(|change| FurtherChange {
        kind: change.kind.word().to_owned(),
        member: change.member.clone(),
        value: change.value.clone(),
        id: change.id.clone(),
        sentence: change.sentence.clone(),
    });
    Some(SmallestChange {
        kind: first.kind.word().to_owned(),
        member: first.member.clone(),
        value: first.value.clone(),
        id: first.id.clone(),
        sentence: first.sentence.clone(),
        decision: word(remedy.decision),
        reason_code: remedy.reason_code.word().to_owned(),
        further: also.collect(),
    })
}
