//! The reasons for rejecting a delivery.

use std::{error::Error, fmt};

/// The reason for rejecting a delivery.
///
/// Its [`code`](Self::code) is the same in the libraries for all languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyError {
    /// The options are incomplete or contradict each other; the text names the problem.
    Configuration(&'static str),
    /// No accepted suite has signed the delivery.
    NoSignature,
    /// A header of the signature is absent, repeated or unreadable.
    Malformed,
    /// The key is not in the JWKS, or is not a webhook key.
    UnknownKey,
    /// The signature does not match the request.
    Signature,
    /// The HTTP message signature does not match the request, its URL or its content type.
    MessageSignature,
    /// The signature is too old, from the future, or has expired.
    Time,
    /// The body differs from the body that was signed.
    Digest,
    /// The delivery is for another URL.
    Url,
    /// The body is not an event.
    Envelope,
    /// The signature is for another event.
    EventId,
    /// The event belongs to another tenant.
    TenantId,
}

impl VerifyError {
    /// A one-word code, for logs and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Configuration(_) => "configuration",
            Self::NoSignature => "no_signature",
            Self::Malformed => "malformed",
            Self::UnknownKey => "unknown_key",
            Self::Signature | Self::MessageSignature => "signature",
            Self::Time => "time",
            Self::Digest => "digest",
            Self::Url => "url",
            Self::Envelope => "envelope",
            Self::EventId => "event_id",
            Self::TenantId => "tenant_id",
        }
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Configuration(why) => why,
            Self::NoSignature => "no accepted suite has signed the delivery",
            Self::Malformed => "a header of the signature is absent, repeated or unreadable",
            Self::UnknownKey => "the key is not a webhook key of the JWKS; fetch the JWKS again",
            Self::Signature => "the signature does not match the request",
            Self::MessageSignature => {
                "the signature does not match the request: url must be the endpoint's URL exactly \
                 as the service shows it (scheme, host, final slash), and content-type as it was \
                 sent"
            }
            Self::Time => "the signature is too old, from the future, or has expired",
            Self::Digest => "the body differs from the signed body",
            Self::Url => {
                "the delivery is for another URL: url must be the endpoint's URL exactly as the \
                 service shows it (scheme, host, final slash)"
            }
            Self::Envelope => "the body is not an event",
            Self::EventId => "the signature is for another event",
            Self::TenantId => "the event belongs to another tenant",
        })
    }
}

impl Error for VerifyError {}
