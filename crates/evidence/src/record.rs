//! The decision record `svc.decision.record.v1`: one canonical text, its id, its signature.
//!
//! The structs below declare their fields in the order of RFC 8785 and have no floating-point
//! numbers. `serde_json` escapes as RFC 8785 requires. Tests compare the bytes with the output of a
//! canonicalizer.

use authority_crypto::{Signer, random, sha256};
use authority_ids::{DecisionId, DelegationRef};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Error, PreparedFacts, canonical, digest_text, salted_digest};
use authority_decision::{
    Request, SEMANTICS, Verdict,
    facts::Spent,
    moment,
    records::{Approval, Declined, OpenRequests},
    time_zone::ZoneOffset,
};

/// `kind` of a decision record.
pub const RECORD_KIND: &str = "svc.decision.record.v1";

/// A decision with its request and facts.
pub struct DecidedRequest<'a> {
    pub operation: &'a str,
    pub request: &'a Request,
    pub facts: &'a PreparedFacts,
    pub spent: &'a Spent,
    pub approval: Option<&'a Approval>,
    pub declined: Option<&'a Declined>,
    pub open_requests: Option<OpenRequests>,
    pub zones: &'a [ZoneOffset],
    pub verdict: &'a Verdict,
    pub evaluated_at: DateTime<Utc>,
    /// A random value, generated before deciding. It makes each call a separate decision.
    pub nonce: &'a str,
}

/// A signed record, and the data to store with it.
pub struct Recorded {
    pub decision_id: DecisionId,
    /// The signed bytes.
    pub record: Vec<u8>,
    pub digest: [u8; 32],
    pub kid: Arc<str>,
    pub signature: [u8; 64],
    pub context: Vec<u8>,
    pub context_salt: [u8; 16],
    /// The facts besides the request: counters, the approval, the decline, the offsets of time
    /// zones, and the digests of the gathered facts and of reality.
    pub facts: Vec<u8>,
    pub facts_salt: [u8; 16],
}

#[derive(Serialize)]
struct Record<'a> {
    authority_revision: u32,
    evaluated_at: String,
    facts_digest: String,
    facts_index: &'a RawValue,
    kind: &'a str,
    nonce: &'a str,
    operation: &'a str,
    request: RecordedRequest<'a>,
    semantics: &'a str,
    tenant_id: &'a str,
    valid_until: Option<String>,
    verdict: RecordedVerdict<'a>,
}

#[derive(Serialize)]
struct RecordedRequest<'a> {
    action: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    action_declaration: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action_risk_classification: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least_revision: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_nonce: Option<&'a str>,
    context_digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    delegation_id: Option<&'a str>,
    explain: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_behalf_of: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    purpose: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_id: Option<&'a str>,
    subject: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    supported_obligations: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_definition_digest: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_id: Option<&'a str>,
}

#[derive(Serialize)]
struct RecordedVerdict<'a> {
    approvals_needed: Option<Approvals<'a>>,
    authority: Option<Authority<'a>>,
    decision: &'a str,
    obligations: &'a [String],
    reason_code: &'a str,
    reasons: Vec<&'a str>,
    stop_conditions: &'a [String],
    tool_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Approvals<'a> {
    count: u32,
    roles: &'a [String],
}

#[derive(Serialize)]
struct Authority<'a> {
    chain: &'a [DelegationRef],
    id: &'a str,
    kind: &'static str,
}

#[derive(Serialize)]
struct Seen<'a> {
    approval: Option<&'a Approval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    declined: Option<&'a Declined>,
    gathered: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_requests: Option<OpenRequests>,
    reality: Option<String>,
    spent: &'a Spent,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    zones: &'a [ZoneOffset],
}

/// Builds and signs the record of a decision, and computes its id.
///
/// # Errors
/// Randomness is unavailable, or a part does not serialise.
pub fn record(asked: &DecidedRequest<'_>, signer: &Signer) -> Result<Recorded, Error> {
    let drawn: [u8; 32] = random()?;
    let mut salts = Salts::default();
    salts.context.copy_from_slice(&drawn[..16]);
    salts.facts.copy_from_slice(&drawn[16..]);
    let Written { decision_id, record, digest, context, facts } = write(asked, &salts)?;
    Ok(Recorded {
        decision_id,
        kid: signer.shared_kid(),
        signature: signer.sign(&record),
        record,
        digest,
        context,
        context_salt: salts.context,
        facts,
        facts_salt: salts.facts,
    })
}

/// The salts that hide context and facts in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Salts {
    pub context: [u8; 16],
    pub facts: [u8; 16],
}

/// A record before it is signed, and the data that its digests are made from.
pub struct Written {
    pub decision_id: DecisionId,
    pub record: Vec<u8>,
    pub digest: [u8; 32],
    pub context: Vec<u8>,
    pub facts: Vec<u8>,
}

/// The initial buffer size for a record, in bytes. Most records fit.
const ROOM: usize = 4096;
const FACTS_ROOM: usize = 256;

/// Writes the record's bytes. The same arguments and salts give the same bytes.
///
/// # Errors
/// A part does not serialise.
pub fn write(asked: &DecidedRequest<'_>, salts: &Salts) -> Result<Written, Error> {
    let context = canonical::object(&asked.request.context)?;
    let seen = Seen {
        approval: asked.approval,
        declined: asked.declined,
        gathered: digest_text(&asked.facts.blob.sha256),
        open_requests: asked.open_requests,
        reality: asked.facts.reality.as_ref().map(|reality| digest_text(&reality.sha256)),
        spent: asked.spent,
        zones: asked.zones,
    };
    let mut facts = Vec::with_capacity(FACTS_ROOM);
    serde_json::to_writer(&mut facts, &seen)?;
    let mut record = Vec::with_capacity(ROOM);
    let whole = Record {
        authority_revision: asked.facts.revision(),
        evaluated_at: moment::text(asked.evaluated_at),
        facts_digest: digest_text(&salted_digest(&salts.facts, &facts)),
        facts_index: &asked.facts.index,
        kind: RECORD_KIND,
        nonce: asked.nonce,
        operation: asked.operation,
        request: recorded_request(asked.request, &salted_digest(&salts.context, &context))?,
        semantics: SEMANTICS,
        tenant_id: &asked.request.tenant_id,
        valid_until: asked.verdict.valid_until.map(moment::text),
        verdict: recorded_verdict(asked.verdict),
    };
    serde_json::to_writer(&mut record, &whole)?;
    let digest = sha256(&record);
    let millis = u64::try_from(asked.evaluated_at.timestamp_millis()).unwrap_or_default();
    let decision_id = DecisionId::new(millis, &digest);
    Ok(Written { decision_id, record, digest, context, facts })
}

/// Writes nested values in RFC 8785 form.
fn canonical(part: impl Serialize) -> Result<Box<RawValue>, serde_json::Error> {
    RawValue::from_string(serde_json_canonicalizer::to_string(&part)?)
}

fn recorded_request<'a>(
    request: &'a Request,
    context: &[u8; 32],
) -> Result<RecordedRequest<'a>, serde_json::Error> {
    Ok(RecordedRequest {
        action: &request.action,
        action_declaration: request.action_declaration.map(canonical).transpose()?,
        action_risk_classification: request
            .action_risk_classification
            .map(canonical)
            .transpose()?,
        approval_id: request.approval_id.as_deref(),
        at_least_revision: request.at_least_revision,
        client_nonce: request.client_nonce.as_deref(),
        context_digest: digest_text(context),
        delegation_id: request.delegation_id.as_deref(),
        explain: request.explain,
        on_behalf_of: request.on_behalf_of.as_deref(),
        project_id: request.project_id.as_deref(),
        purpose: request.purpose.as_deref(),
        resource_id: request.resource_id.as_deref(),
        subject: &request.subject,
        supported_obligations: request.supported_obligations.as_deref(),
        tool_definition_digest: request.tool_definition_digest.as_deref(),
        tool_id: request.tool_id.as_deref(),
        workspace_id: request.workspace_id.as_deref(),
    })
}

fn recorded_verdict(verdict: &Verdict) -> RecordedVerdict<'_> {
    RecordedVerdict {
        approvals_needed: verdict
            .approvals_needed
            .as_ref()
            .map(|needed| Approvals { count: needed.count, roles: &needed.roles }),
        authority: verdict.authority.as_ref().map(|used| Authority {
            chain: &used.chain,
            id: &used.id,
            kind: used.kind.word(),
        }),
        decision: verdict.decision.word(),
        obligations: &verdict.obligations,
        reason_code: verdict.reason_code.word(),
        reasons: verdict.reasons.iter().map(authority_decision::reason::Reason::word).collect(),
        stop_conditions: &verdict.stop_conditions,
        tool_id: verdict.tool_id.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use authority_decision::{
        facts::{CounterKey, Counts},
        levels::ApprovalState,
        records::Signature,
        time_zone::NextOffset,
    };

    use super::*;

    /// The values set every field of every type that is written. The test therefore covers the
    /// declared order of all fields.
    #[test]
    fn the_facts_beside_the_request_are_what_a_canonicalizer_writes() {
        let at = DateTime::from_timestamp_millis(1_780_000_000_123).unwrap();
        let given = |by: &str, own_interest| Signature {
            at: Some(at),
            by: by.to_owned(),
            role: "approver".to_owned(),
            own_interest,
        };
        let approval = Approval {
            expires_at: at,
            given: vec![given("https://idp|\u{1f600}\"", true), given("b", false)],
            id: "svc:approval:acme:1".into(),
            same_question: true,
            same_subject: false,
            state: ApprovalState::Approved,
        };
        let key = |holder_id: &str, counts| CounterKey {
            holder_id: holder_id.into(),
            counts,
            window_seconds: 86_400,
            window_start: -1,
        };
        let spent =
            [(key("svc:del:acme:1", Counts::Uses), 3), (key("é", Counts::Amount), i64::MAX)];
        let spent = Spent(spent.into_iter().collect());
        let zones = [ZoneOffset {
            data: "2026a".to_owned(),
            name: "Europe/Berlin".to_owned(),
            next: Some(NextOffset { at, offset_seconds: 7200 }),
            offset_seconds: 3600,
        }];
        let seen = Seen {
            approval: Some(&approval),
            declined: Some(&Declined { approval_id: "svc:approval:acme:2".into(), at }),
            gathered: digest_text(&[1; 32]),
            open_requests: Some(OpenRequests { limit: 5, pending: 7 }),
            reality: Some(digest_text(&[2; 32])),
            spent: &spent,
            zones: &zones,
        };
        let written = String::from_utf8(serde_json::to_vec(&seen).unwrap()).unwrap();
        assert_eq!(written, serde_json_canonicalizer::to_string(&seen).unwrap());
        for name in
            ["same_subject", "self", "window_start", "pending", "declined", "reality", "next"]
        {
            assert!(written.contains(&format!("\"{name}\":")), "{name}: {written}");
        }
        let read: Spent = serde_json::from_value(serde_json::to_value(&spent).unwrap()).unwrap();
        assert_eq!(read, spent);
    }
}
