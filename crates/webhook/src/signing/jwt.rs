//! `jwt`: a token (RFC 7519, RFC 8037) that contains the body's digest.

use authority_crypto::Signer;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Serialize;

use super::attempt::{Attempt, SigningError, VALID_FOR};

const TYPE: &str = "svc-webhook+jwt";

#[derive(Serialize)]
struct Header<'a> {
    alg: &'static str,
    kid: &'a str,
    typ: &'static str,
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    aud: &'a str,
    iat: i64,
    exp: i64,
    jti: &'a str,
    body_sha256: String,
}

pub(super) fn token(
    attempt: &Attempt<'_>,
    digest: &[u8; 32],
    signer: &Signer,
    issuer: &str,
) -> Result<String, SigningError> {
    let iat = attempt.at.timestamp();
    let header = Header { alg: "EdDSA", kid: signer.kid(), typ: TYPE };
    let claims = Claims {
        iss: issuer,
        aud: attempt.url.as_str(),
        iat,
        exp: iat + VALID_FOR.num_seconds(),
        jti: attempt.event_id,
        body_sha256: hex::encode(digest),
    };
    let signed = format!("{}.{}", part(&header)?, part(&claims)?);
    let signature = URL_SAFE_NO_PAD.encode(signer.sign(signed.as_bytes()));
    Ok(format!("{signed}.{signature}"))
}

fn part(value: &impl Serialize) -> Result<String, SigningError> {
    let json = serde_json::to_vec(value).map_err(|_| SigningError("the token"))?;
    Ok(URL_SAFE_NO_PAD.encode(json))
}
