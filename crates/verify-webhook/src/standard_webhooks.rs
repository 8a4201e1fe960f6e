//! `standard-webhooks/v1`.

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::hmac;

use crate::{
    Options, VerifyError,
    headers::Headers,
    time::{check_time, seconds},
};

/// Returns the id of the signed event.
pub(crate) fn verify(
    body: &[u8],
    headers: Headers<'_>,
    options: &Options<'_>,
    now: u64,
) -> Result<String, VerifyError> {
    let id = headers.one("webhook-id")?;
    let timestamp = headers.one("webhook-timestamp")?;
    let made = seconds(timestamp).ok_or(VerifyError::Malformed)?;
    let signed = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
    // Signatures with a version other than v1 do not come from this service.
    let parts = headers.one("webhook-signature")?.split(' ');
    let codes: Vec<_> = parts
        .filter_map(|part| part.strip_prefix("v1,"))
        .map(|code| STANDARD.decode(code).map_err(|_| VerifyError::Malformed))
        .collect::<Result<_, _>>()?;
    let mut fits = false;
    for secret in options.secrets {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &bytes(secret)?);
        fits |= codes.iter().any(|code| hmac::verify(&key, &signed, code).is_ok());
    }
    if !fits {
        return Err(VerifyError::Signature);
    }
    check_time(made, options, now)?;
    Ok(id.to_owned())
}

fn bytes(secret: &str) -> Result<Vec<u8>, VerifyError> {
    let encoded = secret.strip_prefix("whsec_");
    let bytes = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
    bytes
        .filter(|bytes| bytes.len() == 32)
        .ok_or(VerifyError::Configuration("a secret is whsec_ and base64 of 32 bytes"))
}
