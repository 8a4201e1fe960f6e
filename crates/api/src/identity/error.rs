//! Why a credential is refused, and the error that the client gets.
//!
//! A 401 names the kind of fault, never the credential's content; the header's words are those of
//! RFC 6750.

use crate::error::{ApiError, ErrorCode};

/// The credential is valid, but its tenant is not active.
pub const TENANT_INACTIVE: Error =
    Error::Forbidden("the credential's tenant is suspended or deleted");
/// The token is valid, but the tenant has excluded its person.
pub const PERSON_INACTIVE: Error =
    Error::Forbidden("the token's person is not an active principal of the tenant");
/// The key is valid, but not from where it is used.
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
    #[error("the API key is not one of this service, or was mistyped")]
    MalformedKey,
    #[error("the API key is refused: {0}")]
    Key(&'static str),
    #[error("{0}")]
    Forbidden(&'static str),
    /// An API key where others are taken.
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

impl Error {
    /// What `authority_credentials_refused_total` counts.
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

    /// The reason as an operator's word; `None` if the credential is not at fault.
    pub(super) fn reason(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoCredential => "missing",
            Self::Unreadable => "unreadable",
            Self::Token(_) => "token",
            Self::MalformedKey => "malformed_key",
            Self::Key(_) => "key",
            Self::Forbidden(_) => "forbidden",
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
            Self::Forbidden(_) | Self::TakesNoKey(_) => ErrorCode::Forbidden,
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
            Self::Forbidden(_) | Self::TakesNoKey(_) | Self::Unavailable | Self::Repeated(_) => {
                None
            }
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        if let Error::Repeated(header) = error {
            return Self::field(header, "is given more than once; send it once");
        }
        let refusal = Self::new(error.code(), error.to_string());
        match error.challenge() {
            Some(challenge) => refusal.with("www_authenticate", challenge),
            None => refusal,
        }
    }
}
