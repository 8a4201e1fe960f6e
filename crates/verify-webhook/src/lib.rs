//! For receivers of webhooks: is this delivery genuine, and meant for me?
//!
//! [`verify_webhook`] does it, by [`Options`].
#![doc = include_str!("../README.md")]

mod error;
mod headers;
mod jwt;
mod keys;
mod message_signature;
mod standard_webhooks;
mod suite;

use serde_json::{Map, Value};

pub use error::VerifyError;
pub use suite::Suite;

use headers::Headers;

/// How far the clocks of sender and receiver may differ, and how long a delivery may be under way, in
/// seconds.
pub const DEFAULT_TOLERANCE: u64 = 300;

/// What a receiver expects. Start from [`Options::new`] and give a JWKS, secrets, or both.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The service's JSON Web Key Set (RFC 7517), for the suites `rfc9421` and `jwt`. Fetch it again when a
    /// key is [unknown](VerifyError::UnknownKey), and keep no key that has left it.
    pub jwks: Option<&'a Value>,
    /// The endpoint's secret, `whsec_…`, for the suite `standard-webhooks/v1`; during a rotation the old and
    /// the new one.
    pub secrets: &'a [&'a str],
    /// The suites to accept, the preferred one first. If empty: those for which there are keys, in the order
    /// of [`Suite::ALL`].
    pub accept: &'a [Suite],
    /// The endpoint's URL as the service shows it.
    pub url: &'a str,
    /// The tenant whose events are expected; others of the same service can send to any URL, too.
    pub tenant_id: &'a str,
    /// Seconds; [`DEFAULT_TOLERANCE`] by default. Signatures of the suites `rfc9421` and `jwt` also expire
    /// by themselves, after 300 seconds.
    pub tolerance: u64,
}

impl<'a> Options<'a> {
    /// Without keys, which must be added.
    pub fn new(url: &'a str, tenant_id: &'a str) -> Self {
        let tolerance = DEFAULT_TOLERANCE;
        Self { jwks: None, secrets: &[], accept: &[], url, tenant_id, tolerance }
    }

    fn accepted(&self) -> Result<Vec<Suite>, VerifyError> {
        let has_keys = |suite: Suite| match suite {
            Suite::StandardWebhooks => !self.secrets.is_empty(),
            Suite::Rfc9421 | Suite::Jwt => self.jwks.is_some(),
        };
        if self.url.is_empty() || self.tenant_id.is_empty() {
            return Err(VerifyError::Configuration("url and tenant_id are required"));
        }
        if !self.accept.iter().all(|suite| has_keys(*suite)) {
            return Err(VerifyError::Configuration(
                "accept names a suite without keys: rfc9421 and jwt need jwks, \
                 standard-webhooks/v1 needs secrets",
            ));
        }
        let accepted: Vec<_> = match self.accept {
            [] => Suite::ALL.into_iter().filter(|suite| has_keys(*suite)).collect(),
            accept => accept.to_vec(),
        };
        if accepted.is_empty() {
            return Err(VerifyError::Configuration("give jwks, secrets, or both"));
        }
        Ok(accepted)
    }
}

/// Verifies a delivery at `now`, in seconds since 1970, and gives its event.
///
/// `body` is the request's body byte by byte; `headers` are its headers, whatever the case of their names.
///
/// # Errors
/// The delivery is not genuine or not for this receiver: answer 4xx and do nothing else.
/// [`VerifyError::Configuration`] is the receiver's own mistake: answer 5xx, so that it comes again.
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

/// Whether a signature made at `made` is neither too old nor from the future.
fn check_time(made: u64, options: &Options<'_>, now: u64) -> Result<(), VerifyError> {
    if made.abs_diff(now) <= options.tolerance { Ok(()) } else { Err(VerifyError::Time) }
}

/// Seconds since 1970 in decimal digits.
fn seconds(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.len() <= 15 && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}
