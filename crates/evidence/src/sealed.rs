//! Parses a stored decision into its request, facts and verdict.
//!
//! The module does no I/O: the caller provides the bytes. Data that the record or the facts refer
//! to by digest is accepted only if it has that digest. The result is therefore exactly the data of
//! the decision, or an error.

use authority_crypto::sha256;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};

use super::{Error, digest_text};
use authority_decision::{
    CompiledPolicy, Decision, Facts, FactsDocument, Gathered, PolicyReference, Reason, Request,
    Verdict,
    facts::{RebuildError, Spent},
    input_schema::InputSchema,
    moment,
    records::{Approval, Declined, OpenRequests},
    time_zone::ZoneOffset,
    verdict::{ApprovalsNeeded, AuthorityUsed},
};

/// Returns the request of a record, with its context.
///
/// The record contains only a digest of the context.
///
/// # Errors
/// The record or the context does not have the form that this service writes.
pub fn request(record: &[u8], context: &[u8]) -> Result<Request, Error> {
    let mut record: Map<String, Value> = serde_json::from_slice(record)?;
    let context: Value = serde_json::from_slice(context)?;
    let Some(Value::Object(mut request)) = record.remove("request") else {
        return Err(Error::Unreadable("its request"));
    };
    request.remove("context_digest");
    request.insert("context".to_owned(), context);
    let tenant_id = record.remove("tenant_id").ok_or(Error::Unreadable("its tenant"))?;
    request.insert("tenant_id".to_owned(), tenant_id);
    Ok(serde_json::from_value(Value::Object(request))?)
}

/// Returns the authority under which the decision permits or holds the action.
///
/// # Errors
/// The record names no authority, or does not have the form that this service writes.
pub fn authority(record: &[u8]) -> Result<AuthorityUsed, Error> {
    #[derive(Deserialize)]
    struct Record {
        verdict: Permitting,
    }
    #[derive(Deserialize)]
    struct Permitting {
        authority: AuthorityUsed,
    }
    let record: Record = serde_json::from_slice(record)?;
    Ok(record.verdict.authority)
}

/// The time when a decision permitted an action, and the time by which the action must begin.
#[derive(Deserialize)]
pub struct Permission {
    #[serde(with = "moment")]
    pub evaluated_at: DateTime<Utc>,
    #[serde(with = "moment")]
    pub valid_until: DateTime<Utc>,
}

/// Returns the times of the permission in a record.
///
/// # Errors
/// The decision isn't an allow, or the record does not have the form that this service writes.
pub fn permission(record: &[u8]) -> Result<Permission, Error> {
    Ok(serde_json::from_slice(record)?)
}

/// The facts besides the request, as stored with a decision.
#[derive(Deserialize)]
struct Seen {
    approval: Option<Approval>,
    declined: Option<Declined>,
    /// `sha256:` and hex of the gathered facts.
    gathered: String,
    open_requests: Option<OpenRequests>,
    /// `sha256:` and hex of reality; `None` if it did not concern the request.
    reality: Option<String>,
    spent: Spent,
    #[serde(default)]
    zones: Vec<ZoneOffset>,
}

/// The SHA-256 of facts that are stored separately.
pub struct Digests {
    pub gathered: [u8; 32],
    pub reality: Option<[u8; 32]>,
}

/// Returns the digests of the facts that are stored separately from a decision's `facts`.
///
/// # Errors
/// The facts do not have the form that this service writes.
pub fn digests(facts: &[u8]) -> Result<Digests, Error> {
    let seen: Seen = serde_json::from_slice(facts)?;
    let read = |text: &String| {
        let mut digest = [0; 32];
        let hex = text.strip_prefix("sha256:").unwrap_or_default();
        hex::decode_to_slice(hex, &mut digest)
            .map(|()| digest)
            .map_err(|_| Error::Unreadable("the digest of its facts"))
    };
    let reality = seen.reality.as_ref().map(read).transpose()?;
    Ok(Digests { gathered: read(&seen.gathered)?, reality })
}

/// Returns the approval that a decision used, with the acts that counted.
///
/// # Errors
/// The facts do not have the form that this service writes.
pub fn approval(facts: &[u8]) -> Result<Option<Approval>, Error> {
    let seen: Seen = serde_json::from_slice(facts)?;
    Ok(seen.approval)
}

/// The parts of a decision's facts, as they are stored.
#[derive(Clone, Copy)]
pub struct StoredFacts<'a> {
    /// The facts of this decision alone, with the digests of the other facts.
    pub own: &'a [u8],
    pub gathered: &'a [u8],
    /// `None` if the facts do not name reality, or reality was deleted.
    pub reality: Option<&'a [u8]>,
}

/// Returns references to the active policies and to observing versions. [`facts`] needs their texts.
///
/// # Errors
/// The gathered facts do not have the form that this service writes.
pub fn policies(gathered: &[u8]) -> Result<Vec<PolicyReference>, Error> {
    #[derive(Deserialize)]
    struct Policies {
        policies: Vec<PolicyReference>,
        #[serde(default)]
        observing: Vec<PolicyReference>,
    }
    let Policies { mut policies, observing } = serde_json::from_slice(gathered)?;
    policies.extend(observing);
    Ok(policies)
}

/// Whether observing versions of policies are among the gathered facts.
///
/// # Errors
/// The gathered facts do not have the form that this service writes.
pub fn is_observed(gathered: &[u8]) -> Result<bool, Error> {
    #[derive(Deserialize)]
    struct Policies {
        #[serde(default)]
        observing: Vec<IgnoredAny>,
    }
    let gathered: Policies = serde_json::from_slice(gathered)?;
    Ok(!gathered.observing.is_empty())
}

/// Returns the SHA-256 of the input schemas that [`facts`] needs, in lower-case hex.
///
/// # Errors
/// The gathered facts do not have the form that this service writes.
pub fn schemas(gathered: &[u8]) -> Result<Vec<String>, Error> {
    #[derive(Deserialize)]
    struct Schemas {
        #[serde(default)]
        schemas: Vec<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        sha256: String,
    }
    let gathered: Schemas = serde_json::from_slice(gathered)?;
    Ok(gathered.schemas.into_iter().map(|named| named.sha256).collect())
}

/// Rebuilds the facts of a stored decision.
///
/// `text` returns the text of a policy or input schema for its SHA-256 in lower-case hex.
///
/// The revision of the gathered facts is 0 in the result, because only the record has it.
///
/// # Errors
/// A part is missing, does not match its digest, or cannot be read.
pub fn facts<T: AsRef<str>>(
    stored: StoredFacts<'_>,
    text: impl Fn(&str) -> Option<T>,
) -> Result<Facts, Error> {
    let policy = |reference: &PolicyReference| compiled(reference, text(&reference.sha256));
    facts_with(stored, policy, |sha256| schema(sha256, text(sha256)))
}

/// Rebuilds the facts with precompiled policies and schemas, which many decisions share.
///
/// # Errors
/// The errors of [`facts`], `policy` and `schema`.
pub fn facts_with(
    stored: StoredFacts<'_>,
    policy: impl FnMut(&PolicyReference) -> Result<Arc<CompiledPolicy>, Error>,
    schema: impl FnMut(&str) -> Result<Arc<InputSchema>, Error>,
) -> Result<Facts, Error> {
    let seen: Seen = serde_json::from_slice(stored.own)?;
    let is_named = |body: &[u8], name: &String| digest_text(&sha256(body)) == *name;
    if !is_named(stored.gathered, &seen.gathered) {
        return Err(Error::Unreadable("the facts with the recorded digest"));
    }
    let mut gathered: Gathered<PolicyReference> = serde_json::from_slice(stored.gathered)?;
    gathered.reality = match &seen.reality {
        None => Arc::default(),
        Some(name) => {
            let reality = stored.reality.filter(|body| is_named(body, name));
            let unreadable = Error::Unreadable("the reality that it was decided on");
            serde_json::from_slice(reality.ok_or(unreadable)?)?
        }
    };
    let Seen { approval, declined, open_requests, spent, zones, .. } = seen;
    let gathered = Arc::new(gathered);
    FactsDocument { gathered, spent, approval, declined, open_requests, zones }
        .rebuild_with(policy, schema)
}

/// Compiles a policy from the text that its reference names.
///
/// # Errors
/// The text is missing, does not match its digest, or does not compile.
pub fn compiled(
    reference: &PolicyReference,
    text: Option<impl AsRef<str>>,
) -> Result<Arc<CompiledPolicy>, Error> {
    let id = || reference.id.clone();
    let is = |text: &str| hex::encode(sha256(text.as_bytes())) == reference.sha256;
    let text = text.filter(|text| is(text.as_ref())).ok_or_else(|| RebuildError::TextMissing(id()));
    let compiled = CompiledPolicy::compile(reference.clone(), text?.as_ref());
    Ok(Arc::new(compiled.map_err(|why| RebuildError::Policy(id(), Box::new(why)))?))
}

/// Parses an input schema from its text, which must have this digest.
///
/// # Errors
/// The text is missing, or does not match its digest.
pub fn schema(sha256: &str, text: Option<impl AsRef<str>>) -> Result<Arc<InputSchema>, Error> {
    let is = |text: &str| hex::encode(authority_crypto::sha256(text.as_bytes())) == sha256;
    let text = text.filter(|text| is(text.as_ref()));
    let text = text.ok_or_else(|| RebuildError::SchemaMissing(sha256.to_owned()))?;
    Ok(InputSchema::new(sha256.to_owned(), text.as_ref().to_owned()).into())
}

/// The parts of a verdict that have an effect for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub decision: Decision,
    pub reason_code: Reason,
    pub obligations: Vec<String>,
    pub stop_conditions: Vec<String>,
    pub approvals_needed: Option<ApprovalsNeeded>,
}

impl From<&Verdict> for Outcome {
    fn from(verdict: &Verdict) -> Self {
        Self {
            decision: verdict.decision,
            reason_code: verdict.reason_code,
            obligations: verdict.obligations.clone(),
            stop_conditions: verdict.stop_conditions.clone(),
            approvals_needed: verdict.approvals_needed.clone(),
        }
    }
}

/// The recorded verdict and its time.
pub struct Recorded {
    pub evaluated_at: DateTime<Utc>,
    pub authority_revision: u32,
    pub outcome: Outcome,
}

/// Returns the recorded verdict and its time.
///
/// # Errors
/// The record does not have the form that this service writes.
pub fn recorded(record: &[u8]) -> Result<Recorded, Error> {
    #[derive(Deserialize)]
    struct Record {
        authority_revision: u32,
        evaluated_at: String,
        verdict: RecordedVerdict,
    }
    #[derive(Deserialize)]
    struct RecordedVerdict {
        approvals_needed: Option<ApprovalsNeeded>,
        decision: Decision,
        obligations: Vec<String>,
        reason_code: Reason,
        stop_conditions: Vec<String>,
    }
    let Record { authority_revision, evaluated_at, verdict } = serde_json::from_slice(record)?;
    let evaluated_at = DateTime::parse_from_rfc3339(&evaluated_at);
    Ok(Recorded {
        authority_revision,
        evaluated_at: evaluated_at.map_err(|_| Error::Unreadable("its time"))?.to_utc(),
        outcome: Outcome {
            decision: verdict.decision,
            reason_code: verdict.reason_code,
            obligations: verdict.obligations,
            stop_conditions: verdict.stop_conditions,
            approvals_needed: verdict.approvals_needed,
        },
    })
}
