//! The headers that prove to a receiver that a delivery is genuine and addressed to it.
//!
//! There are three suites, listed in [`Suite`]. A receiver can use a published library for each
//! suite. An endpoint may use several suites. Each attempt is signed again with all of them,
//! because signatures expire.

mod attempt;
mod jwt;
mod message_signature;
mod secret;
mod standard_webhooks;
mod suite;

use authority_crypto::{Signer, sha256};
use http::{HeaderName, HeaderValue};

use attempt::CONTENT_TYPE;
pub use attempt::{Attempt, SigningError, VALID_FOR};
pub use secret::{Secret, SecretError};
pub use suite::{Suite, SuitesError, check_suites};

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");

/// The keys that sign an endpoint's deliveries.
#[derive(Clone, Copy, Debug)]
pub struct SigningKeys<'a> {
    /// For `standard-webhooks/v1`: the endpoint's secret and, during a rotation, the secret before
    /// it.
    pub secrets: &'a [Secret],
    /// For `rfc9421` and `jwt`: a published key of the service.
    pub signer: &'a Signer,
    /// For `jwt`: the service's own URL, which is the base URL of its JWKS.
    pub issuer: &'a str,
}

/// The headers of an attempt, `content-type` included, in a fixed order.
pub fn sign(
    attempt: &Attempt<'_>,
    suites: &[Suite],
    keys: &SigningKeys<'_>,
) -> Result<Vec<(HeaderName, HeaderValue)>, SigningError> {
    let seconds = attempt.at.timestamp();
    let digest = sha256(attempt.body);
    let mut headers = vec![
        (http::header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE)),
        (WEBHOOK_ID, header_value(attempt.event_id, "the event's id")?),
        (WEBHOOK_TIMESTAMP, HeaderValue::from(seconds)),
    ];
    for suite in suites {
        match suite {
            Suite::StandardWebhooks => {
                let signature = standard_webhooks::signature(attempt, keys.secrets);
                headers.push(header("webhook-signature", &signature, "the signature")?);
            }
            Suite::Rfc9421 => {
                let digest = message_signature::content_digest(&digest);
                let (input, signature) =
                    message_signature::signature(attempt, &digest, keys.signer);
                headers.push(header("content-digest", &digest, "the digest")?);
                headers.push(header("signature-input", &input, "the key's id")?);
                headers.push(header("signature", &signature, "the signature")?);
            }
            Suite::Jwt => {
                let token = jwt::token(attempt, &digest, keys.signer, keys.issuer)?;
                headers.push(header("webhook-jwt", &token, "the token")?);
            }
        }
    }
    Ok(headers)
}

fn header(
    name: &'static str,
    value: &str,
    what: &'static str,
) -> Result<(HeaderName, HeaderValue), SigningError> {
    Ok((HeaderName::from_static(name), header_value(value, what)?))
}

fn header_value(value: &str, what: &'static str) -> Result<HeaderValue, SigningError> {
    HeaderValue::from_str(value).map_err(|_| SigningError(what))
}

#[cfg(test)]
mod tests;
