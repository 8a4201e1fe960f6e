//! The reason for refusing a credential, and the error that the client gets.
//!
//! A 401 names the kind of fault, never the credential's content. The error codes in the
//! `WWW-Authenticate` header are defined in RFC 6750.

use std::fmt;

use crate::error::{ApiError, ErrorCode, PERMITTED_ROLES, ROLE};

/// The credential is valid, but its tenant is not active.
pub const TENANT_INACTIVE: Error =
    Error::Forbidden("the credential's tenant is suspended or deleted");
/// The token is valid, but the tenant has excluded its person.
pub const PERSON_INACTIVE: Error =
    Error::Forbidden("the token's person is not an active principal of the tenant");
/// The token is valid, but names a tenant that its issuer may not name.
pub(super) const OTHER_TENANT: Error =
    Error::Forbidden("the token's issuer does not speak for the tenant in the token");
/// The token is valid, but its person could have an account at another issuer.
pub(super) const NEEDS_EMAIL: Error = Error::Forbidden(
    "the token has no `email`, which it needs because this service trusts several issuers: let the identity provider \
     add the claim",
);
/// The key is valid, but may not be used from this address.
pub const ADDRESS_NOT_ALLOWED: Error =
    Error::Forbidden("the API key may not be used from this address");

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("send `Authorization: Bearer` with a token or an API key")]
    NoCredential,
    #[error("the Authorization header must be `Bearer` and one token")]
    Unreadable,
    #[error("the token is refused: {0}")]
    Token(&'static str),
    #[error("the API key is mistyped or belongs to another service")]
    MalformedKey,
    #[error("the API key is refused: {0}")]
    Key(&'static str),
    #[error("{0}")]
    Forbidden(&'static str),
    /// No rule of the method admits the token's role.
    #[error("this operation {0}")]
    Role(RefusedRole),
    /// An API key, where only other credentials are accepted.
    #[error("this operation {0}")]
    TakesNoKey(String),
    #[error("the API key lacks the scope `{0}`")]
    Scope(&'static str),
    #[error("credentials cannot be checked now")]
    Unavailable,
    /// A header that may occur only once.
    #[error("the header `{0}` is given more than once")]
    Repeated(&'static str),
}

/// A role that the rules of a method do not admit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRole {
    /// The role of the token.
    pub role: String,
    /// The roles that the rules admit, in alphabetical order: `owner` for the installation's owner,
    /// `member` for all members of a tenant.
    pub permitted: Vec<&'static str>,
    /// The reason, to follow "this operation".
    pub(super) reason: String,
}

impl fmt::Display for RefusedRole {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.reason)
    }
}

impl Error {
    /// The values of the reason label of `authority_credentials_refused_total`.
    pub(super) const REASONS: [&'static str; 9] = [
        "missing",
        "unreadable",
        "token",
        "malformed_key",
        "key",
        "forbidden",
        "takes_no_key",
        "scope",
        "unavailable",
    ];

    /// The value of the reason label; `None` if the credential is not at fault.
    pub(super) fn reason(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoCredential => "missing",
            Self::Unreadable => "unreadable",
            Self::Token(_) => "token",
            Self::MalformedKey => "malformed_key",
            Self::Key(_) => "key",
            Self::Forbidden(_) | Self::Role(_) => "forbidden",
            Self::TakesNoKey(_) => "takes_no_key",
            Self::Scope(_) => "scope",
            Self::Unavailable => "unavailable",
            Self::Repeated(_) => return None,
        })
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::NoCredential
            | Self::Unreadable
            | Self::Token(_)
            | Self::MalformedKey
            | Self::Key(_) => ErrorCode::Unauthenticated,
            Self::Forbidden(_) | Self::Role(_) | Self::TakesNoKey(_) => ErrorCode::Forbidden,
            Self::Scope(_) => ErrorCode::PermissionScopeExceeded,
            Self::Unavailable => ErrorCode::Unavailable,
            Self::Repeated(_) => ErrorCode::InvalidRequest,
        }
    }

    /// The `WWW-Authenticate` header for this error (RFC 6750, section 3).
    fn challenge(&self) -> Option<String> {
        const REALM: &str = "Bearer realm=\"authority\"";
        match self {
            Self::NoCredential => Some(REALM.to_owned()),
            Self::Unreadable => Some(format!("{REALM}, error=\"invalid_request\"")),
            Self::Token(_) | Self::MalformedKey | Self::Key(_) => {
                Some(format!("{REALM}, error=\"invalid_token\", error_description=\"{self}\""))
            }
            Self::Scope(scope) => {
                Some(format!("{REALM}, error=\"insufficient_scope\", scope=\"{scope}\""))
            }
            Self::Forbidden(_)
            | Self::Role(_)
            | Self::TakesNoKey(_)
            | Self::Unavailable
            | Self::Repeated(_) => None,
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        if let Error::Repeated(header) = error {
            return Self::field(header, "is given more than once; send it once");
        }
        let mut refusal = Self::new(error.code(), error.to_string());
        if let Error::Role(RefusedRole { role, permitted, .. }) = &error {
            refusal = refusal.with(ROLE, role).with(PERMITTED_ROLES, permitted.join(", "));
        }
        match error.challenge() {
            Some(challenge) => refusal.with("www_authenticate", challenge),
            None => refusal,
        }
    }
}
