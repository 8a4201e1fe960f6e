//! An outcome as each door answers it.

use authority_model::proto::runtime::{
    AuthorizeResponse, Decision as Word, EvaluateDecisionResponse, EvaluateResponse, EvidencePack,
    EvidenceReference, Finding, Signature, Stage,
};
use base64::{Engine, engine::general_purpose::STANDARD};

use super::decide::Decided;
use crate::{
    decision::{
        Decision,
        trace::{StageTrace, Step},
    },
    evidence::digest_text,
};

/// The wire's word for a decision.
pub(super) fn word(decision: Decision) -> i32 {
    let word = match decision {
        Decision::Allow => Word::Allow,
        Decision::AllowWithConstraints => Word::AllowWithConstraints,
        Decision::RequireApproval => Word::RequireApproval,
        Decision::Deny => Word::Deny,
    };
    word.into()
}

/// The evaluate endpoint knows no constraints: they stand beside a plain allow.
impl From<&Decided> for EvaluateResponse {
    fn from(decided: &Decided) -> Self {
        let decision = decided.verdict.decision.folded();
        Self {
            decision: word(decision),
            reason_code: decided.verdict.reason_code.word().to_owned(),
            decision_id: decided.decision_id.clone(),
            evidence: Some(evidence(decided, decision)),
            verify_url: decided.verify_url.clone(),
            evidence_pack: Some(pack(&decided.record_digest, &decided.kid, &decided.signature)),
            obligations: decided.verdict.obligations.clone(),
            stop_conditions: decided.verdict.stop_conditions.clone(),
            approval_id: decided.approval_id.clone(),
            authority_revision: decided.revision,
            valid_until: decided.verdict.valid_until.map(Into::into),
            trace: stages(decided),
        }
    }
}

impl From<&Decided> for AuthorizeResponse {
    fn from(decided: &Decided) -> Self {
        Self {
            decision: word(decided.verdict.decision),
            reasons: reasons(decided),
            obligations: decided.verdict.obligations.clone(),
            stop_conditions: decided.verdict.stop_conditions.clone(),
            decision_id: decided.decision_id.clone(),
            reason_code: decided.verdict.reason_code.word().to_owned(),
            approval_id: decided.approval_id.clone(),
            evidence: Some(evidence(decided, decided.verdict.decision)),
            evidence_pack: Some(pack(&decided.record_digest, &decided.kid, &decided.signature)),
            authority_revision: decided.revision,
            valid_until: decided.verdict.valid_until.map(Into::into),
            trace: stages(decided),
        }
    }
}

impl From<&Decided> for EvaluateDecisionResponse {
    fn from(decided: &Decided) -> Self {
        Self {
            decision: word(decided.verdict.decision),
            reason_code: decided.verdict.reason_code.word().to_owned(),
            reasons: reasons(decided),
            decision_id: decided.decision_id.clone(),
            obligations: decided.verdict.obligations.clone(),
            stop_conditions: decided.verdict.stop_conditions.clone(),
            approval_id: decided.approval_id.clone(),
            evidence: Some(evidence(decided, decided.verdict.decision)),
            verify_url: decided.verify_url.clone(),
            evidence_pack: Some(pack(&decided.record_digest, &decided.kid, &decided.signature)),
            authority_revision: decided.revision,
            evaluated_at: Some(decided.evaluated_at.into()),
            valid_until: decided.verdict.valid_until.map(Into::into),
            stages: stages(decided),
        }
    }
}

fn evidence(decided: &Decided, decision: Decision) -> EvidenceReference {
    EvidenceReference {
        kind: "audit_reference".to_owned(),
        id: decided.decision_id.clone(),
        outcome: decision.word().to_owned(),
        reason: decided.verdict.reason_code.word().to_owned(),
        verify_url: decided.verify_url.clone(),
    }
}

/// The proof that is handed out with a decision.
pub(super) fn pack(digest: &[u8; 32], kid: &str, signature: &[u8]) -> EvidencePack {
    EvidencePack {
        record_digest: digest_text(digest),
        signature: Some(Signature {
            alg: "Ed25519".to_owned(),
            canonicalization: "RFC8785".to_owned(),
            kid: kid.to_owned(),
            value: STANDARD.encode(signature),
        }),
    }
}

fn reasons(decided: &Decided) -> Vec<String> {
    decided.verdict.reasons.iter().map(|reason| reason.word().to_owned()).collect()
}

fn stages(decided: &Decided) -> Vec<Stage> {
    decided.verdict.trace.iter().flatten().map(stage).collect()
}

fn stage(trace: &StageTrace) -> Stage {
    Stage {
        stage: trace.stage.word().to_owned(),
        outcome: trace.outcome.word().to_owned(),
        reason_code: trace.reason_code.map(|code| code.word().to_owned()),
        findings: trace.steps.iter().map(finding).collect(),
    }
}

fn finding(step: &Step) -> Finding {
    Finding {
        check: format!("{} {}", step.kind, step.id).trim_end().to_owned(),
        outcome: step.outcome.word().to_owned(),
        reason_code: step.reason_code.map(|code| code.word().to_owned()),
        detail: (!step.detail.is_empty()).then(|| step.detail.clone()),
    }
}
