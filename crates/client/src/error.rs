//! The reasons a call failed.

use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;

/// The detail of a refusal that lists the roles that may call the operation.
const PERMITTED_ROLES: &str = "permitted_roles";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no answer from {base}: {cause}")]
    Unreached { base: String, cause: String },
    #[error("{} {}: {}", .0.method, .0.path, .0.error.error)]
    Refused(Box<Refusal>),
    /// The service ended a stream with an error.
    #[error("the stream ended: {}", .0.error)]
    Ended(Box<ApiError>),
    /// The response is of another service.
    #[error("unexpected response from {base}: {what}")]
    Unexpected { base: String, what: String },
    #[error("the token has characters that an HTTP header may not contain")]
    Credential,
    #[error("the address cannot take a path")]
    Address,
    #[error("the parameters cannot be written: {0}")]
    Parameters(#[from] serde_json::Error),
    #[error(transparent)]
    Http(#[from] reqwest::Error),
}

/// The service's refusal of a request.
#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    pub method: Method,
    pub path: String,
    pub error: ApiError,
}

/// The body of every error.
#[derive(Debug, Deserialize)]
pub struct ApiError {
    pub error: String,
    pub message: String,
    #[serde(default)]
    pub details: Vec<Detail>,
    pub request_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Detail {
    pub field: String,
    pub problem: String,
    /// A value of the error. Without it, the detail is about a field of the request.
    pub value: Option<Value>,
}

impl ApiError {
    /// Whether the caller's role excludes every request to this operation.
    pub fn is_of_rules(&self) -> bool {
        let lists_roles =
            |detail: &Detail| detail.field == PERMITTED_ROLES && detail.value.is_some();
        self.error == "forbidden" && self.details.iter().any(lists_roles)
    }

    /// Whether the sign-in was too long ago (RFC 9470).
    pub fn asks_for_a_sign_in(&self) -> bool {
        self.error == "insufficient_user_authentication"
    }
}

/// Returns the innermost cause of an error, without the address. The outer errors only report that
/// an error occurred.
pub fn deepest(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
