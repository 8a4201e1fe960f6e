//! The signing suites of deliveries.

use std::fmt;

/// A signing suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suite {
    /// `standard-webhooks/v1`: HMAC-SHA256 with a secret shared with the receiver (Standard
    /// Webhooks).
    StandardWebhooks,
    /// `rfc9421`: HTTP Message Signatures by a published Ed25519 key, with a digest of the body
    /// (RFC 9530).
    Rfc9421,
    /// `jwt`: a JSON Web Token (RFC 7519) by a published Ed25519 key, with a digest of the body.
    Jwt,
}

/// Why the suites of an endpoint are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuitesError {
    #[error(
        "signing_suites must have at least one; leave it out for standard-webhooks/v1 and rfc9421"
    )]
    None,
    #[error("signing_suites: unknown suite `{0}`; there are standard-webhooks/v1, rfc9421 and jwt")]
    Unknown(String),
    #[error("signing_suites: `{0}` comes twice")]
    Twice(Suite),
}

impl Suite {
    pub const ALL: [Self; 3] = [Self::StandardWebhooks, Self::Rfc9421, Self::Jwt];
    /// The suites of an endpoint that does not name any.
    pub const DEFAULT: [Self; 2] = [Self::StandardWebhooks, Self::Rfc9421];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::StandardWebhooks => "standard-webhooks/v1",
            Self::Rfc9421 => "rfc9421",
            Self::Jwt => "jwt",
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.as_str())
    }
}

/// Reads an endpoint's `signing_suites`, in the order given.
pub fn check_suites(names: &[String]) -> Result<Vec<Suite>, SuitesError> {
    let mut suites = Vec::new();
    for name in names {
        let suite = Suite::ALL.into_iter().find(|suite| suite.as_str() == name);
        let suite = suite.ok_or_else(|| SuitesError::Unknown(name.clone()))?;
        if suites.contains(&suite) {
            return Err(SuitesError::Twice(suite));
        }
        suites.push(suite);
    }
    if suites.is_empty() { Err(SuitesError::None) } else { Ok(suites) }
}
