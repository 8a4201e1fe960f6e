//! Checks that a permission is signed, and is for exactly this request.

use std::time::Duration;

use authority_crypto::sha256_of;
use authority_evidence::{
    digest_text,
    verify::{Fault, KeySet, key_set, verify_decided},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::DateTime;
use serde_json::{Map, Value};

use crate::mcp::decision::Permit;

/// The members of a recorded request that no question has.
const RECORDED_ONLY: [&str; 2] = ["context_digest", "explain"];
/// The members of a question that are not recorded as they are sent.
const SENT_ONLY: [&str; 3] = ["context", "explain", "include_record"];

/// The parts of a verified record that the relay needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verified {
    /// How long the permission lasts, from the decision.
    pub(crate) lifetime: Duration,
    /// Whether the decision uses an approval.
    pub(crate) is_approved: bool,
}

/// Why a permission is not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unverified {
    /// None of the known keys has the signature's id. Newer keys may have it.
    UnknownKey,
    Invalid(String),
}

/// Returns the keys of a JWK set that sign evidence now.
///
/// # Errors
/// The document is not a JWK set.
pub(crate) fn keys(jwks: &Value) -> Result<KeySet, String> {
    let all = jwks["keys"].as_array().ok_or("the JWK set has no `keys`")?;
    let valid: Vec<_> = all.iter().filter(|key| key["revoked_at"].is_null()).cloned().collect();
    let document = serde_json::json!({ "keys": valid }).to_string();
    key_set(document.as_bytes()).map_err(|fault| fault.to_string())
}

/// Checks the record of a permission against the question that was sent.
///
/// # Errors
/// The record is not signed by a known key, or is of another question, call or decision.
pub(crate) fn verify(
    permit: &Permit,
    question: &Value,
    tenant_id: &str,
    keys: &KeySet,
) -> Result<Verified, Unverified> {
    let proof = |member: &str| permit.proof[member].as_str().unwrap_or_default();
    let record = verify_decided(
        proof("record"),
        &permit.decision_id,
        proof("record_digest"),
        &permit.proof["signature"],
        keys,
    );
    let record = record.map_err(|fault: Fault| {
        if fault.lacks_key() {
            Unverified::UnknownKey
        } else {
            Unverified::Invalid(fault.to_string())
        }
    })?;
    let need = |holds: bool, what: &str| {
        if holds { Ok(()) } else { Err(Unverified::Invalid(what.to_owned())) }
    };
    need(record["tenant_id"] == tenant_id, "the record is of another tenant")?;
    let decision = record["verdict"]["decision"].as_str().unwrap_or_default();
    need(matches!(decision, "allow" | "allow_with_constraints"), "the record permits nothing")?;
    let recorded = record["verdict"]["obligations"].as_array().map(Vec::as_slice);
    let same = recorded.unwrap_or_default().iter().map(Value::as_str);
    need(same.eq(permit.obligations.iter().map(|one| Some(one.as_str()))), "obligations differ")?;
    need(is_asked(&record["request"], question), "the record is of another question")?;
    let salt = STANDARD.decode(proof("salt")).unwrap_or_default();
    let context = serde_json_canonicalizer::to_vec(&question["context"]).unwrap_or_default();
    let digest = digest_text(&sha256_of(&[&salt, &context]));
    need(record["request"]["context_digest"] == *digest, "the record is of another context")?;
    let time = |member: &str| DateTime::parse_from_rfc3339(record[member].as_str()?).ok();
    let lifetime = time("evaluated_at").zip(time("valid_until"));
    let lifetime = lifetime.and_then(|(from, until)| (until - from).to_std().ok());
    let missing = || Unverified::Invalid("the record has no lifetime".to_owned());
    let is_approved = !record["request"]["approval_id"].is_null();
    Ok(Verified { lifetime: lifetime.ok_or_else(missing)?, is_approved })
}

/// Whether the recorded request is the question, member by member. With `cite_ready_approval` the
/// record has an approval that is not in the request.
fn is_asked(recorded: &Value, question: &Value) -> bool {
    let Some(recorded) = recorded.as_object() else { return false };
    let Some(question) = question.as_object() else { return false };
    let sent = without(question, &SENT_ONLY);
    let mut recorded = without(recorded, &RECORDED_ONLY);
    if !sent.contains_key("approval_id") {
        recorded.remove("approval_id");
    }
    recorded == sent
}

fn without(members: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let kept = members.iter().filter(|(name, _)| !names.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use authority_crypto::sha256;
    use serde_json::json;

    use super::*;
    use crate::mcp::tests::signing::{Signing, TENANT, question};

    /// Of each signed permission in tests.
    const LIFETIME: Duration = Duration::from_secs(30);

    #[test]
    fn a_permission_of_this_question_is_accepted() {
        let signing = Signing::new();
        let asked = question("00112233445566778899aabbccddeeff");
        let permit = signing.permit(&asked);
        let expected = Verified { lifetime: LIFETIME, is_approved: false };
        assert_eq!(verify(&permit, &asked, TENANT, &signing.keys()), Ok(expected));
    }

    #[test]
    fn a_cited_approval_that_nobody_sent_is_accepted() {
        let signing = Signing::new();
        let asked = question("00112233445566778899aabbccddeeff");
        let permit = signing.permit_with(&asked, |record| {
            record["request"]["approval_id"] = json!("svc:approval:1");
        });
        let expected = Verified { lifetime: LIFETIME, is_approved: true };
        assert_eq!(verify(&permit, &asked, TENANT, &signing.keys()), Ok(expected));
    }

    #[test]
    fn a_permission_of_another_question_is_refused() {
        let signing = Signing::new();
        let asked = question("00112233445566778899aabbccddeeff");
        type Change = (&'static str, fn(&mut Value));
        let changes: [Change; 8] = [
            ("nonce", |record| record["request"]["client_nonce"] = json!("ff")),
            ("action", |record| record["request"]["action"] = json!("mcp.x.other")),
            ("subject", |record| record["request"]["subject"] = json!("svc:agent:acme:other")),
            ("tool", |record| record["request"]["tool_id"] = json!("other")),
            ("more", |record| record["request"]["delegation_id"] = json!("svc:del:acme:1")),
            ("context", |record| record["request"]["context_digest"] = json!("sha256:0")),
            ("tenant", |record| record["tenant_id"] = json!("svc:tenant:other")),
            ("verdict", |record| record["verdict"]["decision"] = json!("deny")),
        ];
        for (name, change) in changes {
            let permit = signing.permit_with(&asked, change);
            let refused = verify(&permit, &asked, TENANT, &signing.keys());
            assert!(matches!(refused, Err(Unverified::Invalid(_))), "{name}: {refused:?}");
        }
    }

    #[test]
    fn a_permission_that_no_trusted_key_signed_is_refused() {
        let (signing, other) = (Signing::new(), Signing::new());
        let asked = question("00112233445566778899aabbccddeeff");
        let permit = signing.permit(&asked);
        let refused = verify(&permit, &asked, TENANT, &other.keys());
        assert_eq!(refused, Err(Unverified::UnknownKey));
        let mut forged = permit.clone();
        let record = forged.proof["record"].as_str().unwrap().replace("\"allow\"", "\"deny\"");
        forged.proof["record_digest"] = json!(digest_text(&sha256(record.as_bytes())));
        forged.proof["record"] = json!(record);
        assert!(matches!(
            verify(&forged, &asked, TENANT, &signing.keys()),
            Err(Unverified::Invalid(_))
        ));
        let mut unsigned = permit;
        unsigned.proof["signature"] = json!(null);
        assert!(matches!(
            verify(&unsigned, &asked, TENANT, &signing.keys()),
            Err(Unverified::Invalid(_))
        ));
    }

    #[test]
    fn a_revoked_key_signs_nothing() {
        let signing = Signing::new();
        let mut jwks = signing.jwks();
        jwks["keys"][0]["revoked_at"] = json!("2026-11-30T00:00:00Z");
        assert!(keys(&jwks).unwrap().is_empty());
    }
}
