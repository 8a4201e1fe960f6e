//! The signed text of a certification.

use authority_crypto::Signer;
use authority_model::{proto::programme::Certification, validate::Violations, wire::Time};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Serialize;

use crate::flow::{error::Error, issuers::Unverified, registry::Registry};
use authority_api::error::ErrorCode;

/// Distinguishes a certification from other texts that keys sign.
const KIND: &str = "svc.certification.v1";
/// Values of `signed_by`.
pub(super) const SERVICE: &str = "service";
pub(super) const ISSUER: &str = "issuer";

#[derive(Serialize)]
struct Signed<'a> {
    kind: &'static str,
    consultant_id: &'a str,
    level: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_after: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence_pack_id: Option<&'a str>,
}

/// Returns the signed text, in the form of RFC 8785.
pub(super) fn text(of: &Certification) -> Result<String, Error> {
    let signed = Signed {
        kind: KIND,
        consultant_id: &of.consultant_id,
        level: &of.level,
        program: of.program.as_deref(),
        not_before: of.not_before,
        not_after: of.not_after,
        evidence_pack_id: of.evidence_pack_id.as_deref(),
    };
    serde_json_canonicalizer::to_string(&signed).map_err(|error| {
        Error::Store(authority_store::Error::Internal(format!("not serialisable: {error}")))
    })
}

/// Signs with the service's own key.
pub(super) fn sign(row: &mut Certification, signer: &Signer) -> Result<(), Error> {
    row.signed = text(row)?;
    row.signature_value_b64 = Some(STANDARD.encode(signer.sign(row.signed.as_bytes())));
    row.signature_kid = Some(signer.kid().to_owned());
    SERVICE.clone_into(&mut row.signed_by);
    Ok(())
}

/// Signs a new certification, or verifies the signature it was sent with. `field` is the path
/// prefix of its fields.
pub(super) async fn sign_or_verify(
    registry: &Registry,
    row: &mut Certification,
    field: &str,
) -> Result<(), Error> {
    let mut found = Violations::default();
    let (kid, value) = match (&row.signature_kid, &row.signature_value_b64) {
        (None, None) => {
            let signer = registry.keys.programme_signer().await?;
            return sign(row, &signer);
        }
        (Some(kid), Some(value)) => (kid, value),
        (kid, _) => {
            let (missing, given) = match kid {
                Some(_) => ("signature_value_b64", "signature_kid"),
                None => ("signature_kid", "signature_value_b64"),
            };
            found.add(&format!("{field}{missing}"), format!("is required with `{given}`"));
            return Error::unless_clean(found);
        }
    };
    let signed = text(row)?;
    let wrong = "is not this key's signature over the certification";
    match STANDARD.decode(value) {
        Err(_) => found.add(&format!("{field}signature_value_b64"), "is not base64"),
        Ok(signature) => match registry.issuers.verify(kid, &signed, &signature).await {
            Ok(()) => {
                row.signed = signed;
                ISSUER.clone_into(&mut row.signed_by);
            }
            Err(Unverified::UnknownKid) => {
                let problem = format!("no trusted issuer has the key `{kid}`");
                found.add(&format!("{field}signature_kid"), problem);
            }
            Err(Unverified::Wrong) => found.add(&format!("{field}signature_value_b64"), wrong),
            Err(Unverified::Unavailable) => {
                return Err(Error::Refused(ErrorCode::Unavailable));
            }
        },
    }
    Error::unless_clean(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_are_left_out_and_members_are_sorted() {
        let mut of = Certification {
            consultant_id: "svc:consultant:1".to_owned(),
            level: "master".to_owned(),
            ..Certification::default()
        };
        let least = r#"{"consultant_id":"svc:consultant:1","kind":"svc.certification.v1","level":"master"}"#;
        assert_eq!(text(&of).unwrap(), least);
        of.not_after = Some(Time::from_micros(4_070_908_800_000_000));
        of.program = Some("ü".to_owned());
        let all = r#"{"consultant_id":"svc:consultant:1","kind":"svc.certification.v1","level":"master","not_after":"2099-01-01T00:00:00Z","program":"ü"}"#;
        assert_eq!(text(&of).unwrap(), all);
    }
}
