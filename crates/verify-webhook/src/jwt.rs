//! `jwt`: a JSON Web Token (RFC 7519) that contains the body's digest.

use std::fmt::Write;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

use crate::{Options, VerifyError, headers::Headers, keys, time::check_time};

/// Returns the id of the signed event.
pub(crate) fn verify(
    body: &[u8],
    headers: Headers<'_>,
    options: &Options<'_>,
    now: u64,
) -> Result<String, VerifyError> {
    let token = headers.one("webhook-jwt")?;
    let (signed, signature) = token.rsplit_once('.').ok_or(VerifyError::Malformed)?;
    let (header, claims) = signed.split_once('.').ok_or(VerifyError::Malformed)?;
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| VerifyError::Malformed)?;
    let header = object(header).ok_or(VerifyError::Malformed)?;
    let kid = kid(&header).ok_or(VerifyError::Malformed)?;
    let claims = object(claims).ok_or(VerifyError::Malformed)?;
    let text = |claim: &str| claims.get(claim)?.as_str();
    let time = |claim: &str| claims.get(claim)?.as_u64();
    let read =
        || Some((time("iat")?, time("exp")?, text("aud")?, text("jti")?, text("body_sha256")?));
    let (iat, exp, audience, event_id, body_sha256) = read().ok_or(VerifyError::Malformed)?;

    keys::verify(options.jwks, kid, signed.as_bytes(), &signature)?;
    check_time(iat, options, now)?;
    if now > exp {
        return Err(VerifyError::Time);
    }
    if body_sha256 != hex(digest(&SHA256, body).as_ref()) {
        return Err(VerifyError::Digest);
    }
    if audience != options.url {
        return Err(VerifyError::Url);
    }
    Ok(event_id.to_owned())
}

/// The key's id, if the token's header has the algorithm and type used for deliveries.
fn kid(header: &Map<String, Value>) -> Option<&str> {
    let text = |member: &str| header.get(member)?.as_str();
    let fits = text("alg") == Some("EdDSA")
        && text("typ") == Some("svc-webhook+jwt")
        && !header.contains_key("crit");
    text("kid").filter(|_| fits)
}

fn object(part: &str) -> Option<Map<String, Value>> {
    let json = URL_SAFE_NO_PAD.decode(part).ok()?;
    serde_json::from_slice(&json).ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
