//! The ways in which deliveries are signed.

/// A signing suite; an endpoint's `signing_suites` says which its deliveries have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// `rfc9421`: HTTP Message Signatures by a published key.
    Rfc9421,
    /// `jwt`: a JSON Web Token by a published key.
    Jwt,
    /// `standard-webhooks/v1`: a code by a shared secret.
    StandardWebhooks,
}

impl Suite {
    /// By published keys first: a secret that leaks lets anybody sign.
    pub const ALL: [Self; 3] = [Self::Rfc9421, Self::Jwt, Self::StandardWebhooks];

    /// As `signing_suites` names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rfc9421 => "rfc9421",
            Self::Jwt => "jwt",
            Self::StandardWebhooks => "standard-webhooks/v1",
        }
    }

    /// The header that a delivery signed by it has.
    pub(crate) fn header(self) -> &'static str {
        match self {
            Self::Rfc9421 => "signature-input",
            Self::Jwt => "webhook-jwt",
            Self::StandardWebhooks => "webhook-signature",
        }
    }
}
