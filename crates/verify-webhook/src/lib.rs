//! Verifies webhook deliveries on the receiver's side.
//!
//! The entry point is [`verify_webhook`], configured by [`Options`].
#![doc = include_str!("../README.md")]

mod error;
mod headers;
mod jwt;
mod keys;
mod message_signature;
mod options;
mod standard_webhooks;
mod suite;
mod time;

use serde_json::{Map, Value};

pub use error::VerifyError;
pub use options::{DEFAULT_TOLERANCE, Options};
pub use suite::Suite;

use headers::Headers;

/// Verifies a delivery at `now`, in seconds since 1970, and returns its event.
///
/// `body` is the raw request body; `headers` are its headers, with names in any case.
///
/// # Errors
/// The delivery is not genuine or not for this receiver: respond with 4xx and ignore it.
/// [`VerifyError::Configuration`] is the receiver's own mistake: respond with 5xx to get the
/// delivery again.
pub fn verify_webhook(
    body: &[u8],
    headers: &[(&str, &str)],
    options: &Options<'_>,
    now: u64,
) -> Result<Map<String, Value>, VerifyError> {
    let accepted = options.accepted()?;
    let headers = Headers(headers);
    let suite = accepted.into_iter().find(|suite| headers.has(suite.header()));
    let event_id = match suite.ok_or(VerifyError::NoSignature)? {
        Suite::StandardWebhooks => standard_webhooks::verify(body, headers, options, now)?,
        Suite::Rfc9421 => message_signature::verify(body, headers, options, now)?,
        Suite::Jwt => jwt::verify(body, headers, options, now)?,
    };
    let Ok(Value::Object(event)) = serde_json::from_slice(body) else {
        return Err(VerifyError::Envelope);
    };
    let text = |member: &str| event.get(member).and_then(Value::as_str);
    if text("event_id") != Some(event_id.as_str()) {
        return Err(VerifyError::EventId);
    }
    if text("tenant_id") != Some(options.tenant_id) {
        return Err(VerifyError::TenantId);
    }
    Ok(event)
}
