//! Why a delivery is not accepted.

use std::{error::Error, fmt};

/// Each has a [`code`](Self::code), the same in all languages of this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyError {
    /// The options are incomplete or contradict each other; says which.
    Configuration(&'static str),
    /// No suite that is accepted has signed the delivery.
    NoSignature,
    /// A header that belongs to the signature is absent, comes twice or cannot be read.
    Malformed,
    /// The key is not in the JWKS, or is not one for webhooks.
    UnknownKey,
    /// The signature does not fit the request.
    Signature,
    /// The signature is too old, from the future, or has expired.
    Time,
    /// The body is not the one that was signed.
    Digest,
    /// The delivery is for another URL.
    Url,
    /// The body is not an event.
    Envelope,
    /// The body is another event than the signature says.
    EventId,
    /// The event is another tenant's.
    TenantId,
}

impl VerifyError {
    /// One word for it, for logs and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Configuration(_) => "configuration",
            Self::NoSignature => "no_signature",
            Self::Malformed => "malformed",
            Self::UnknownKey => "unknown_key",
            Self::Signature => "signature",
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
            Self::Signature => "the signature does not fit the request",
            Self::Time => "the signature is too old, from the future, or has expired",
            Self::Digest => "the body is not the one that was signed",
            Self::Url => "the delivery is for another URL",
            Self::Envelope => "the body is not an event",
            Self::EventId => "the body is another event than the signature says",
            Self::TenantId => "the event is another tenant's",
        })
    }
}

impl Error for VerifyError {}
