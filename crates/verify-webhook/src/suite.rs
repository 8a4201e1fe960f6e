//! The signing suites of deliveries.

/// A signing suite. An endpoint's `signing_suites` lists the suites of its deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// `rfc9421`: HTTP Message Signatures with a published key.
    Rfc9421,
    /// `jwt`: a JSON Web Token with a published key.
    Jwt,
    /// `standard-webhooks/v1`: an HMAC with a shared secret.
    StandardWebhooks,
}

impl Suite {
    /// All suites. Suites with published keys come first: with a shared secret, anyone who obtains
    /// the secret can sign.
    pub const ALL: [Self; 3] = [Self::Rfc9421, Self::Jwt, Self::StandardWebhooks];

    /// The name used in `signing_suites`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rfc9421 => "rfc9421",
            Self::Jwt => "jwt",
            Self::StandardWebhooks => "standard-webhooks/v1",
        }
    }

    /// The header that is present in every delivery signed with this suite.
    pub(crate) fn header(self) -> &'static str {
        match self {
            Self::Rfc9421 => "signature-input",
            Self::Jwt => "webhook-jwt",
            Self::StandardWebhooks => "webhook-signature",
        }
    }
}
