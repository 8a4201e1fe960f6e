//! The headers by which a receiver knows that a delivery is genuine, and meant for it.
//!
//! Three suites, so that receivers need nothing but a released library: [`Suite`] says which. An endpoint
//! may have several; each attempt is signed afresh by all of them, because signatures expire.

mod jwt;
mod message_signature;
mod secret;
mod standard_webhooks;
mod suite;

use authority_crypto::{Signer, sha256};
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, TimeDelta, Utc};
use http::{HeaderName, HeaderValue};

use crate::destination::EndpointUrl;

pub use secret::{Secret, SecretError};
pub use suite::{Suite, SuitesError, check_suites};

/// How long the signatures of suites 2 and 3 are valid, and how old those of suite 1 may be.
pub const VALID_FOR: TimeDelta = TimeDelta::seconds(300);

const CONTENT_TYPE: &str = "application/json";
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");

/// One attempt of one delivery.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    pub event_id: &'a str,
    pub url: &'a EndpointUrl,
    /// The event's canonical bytes.
    pub body: &'a [u8],
    /// The time of this attempt, not of the event.
    pub at: DateTime<Utc>,
}

/// What an endpoint's deliveries are signed with.
#[derive(Clone, Copy, Debug)]
pub struct SigningKeys<'a> {
    /// The endpoint's secret, and during a rotation its predecessor: for suite 1.
    pub secrets: &'a [Secret],
    /// A published key of the service: for suites 2 and 3.
    pub signer: &'a Signer,
    /// The service's own URL, as its JWKS is found below it: for suite 3.
    pub issuer: &'a str,
}

/// Why an attempt cannot be signed: a value that it is made of cannot stand in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} cannot stand in a header")]
pub struct SigningError(&'static str);

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

fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests;
