//! The page of a failed sign-in.

use super::provider::Error;
use crate::kit::prelude::*;

pub(super) const TITLE: &str = "You are not signed in";

/// The error page if the provider is unavailable or refuses.
pub(super) fn failed(error: &Error, to: &str) -> Response {
    tracing::warn!(%error, "failed to complete a sign-in at the console");
    let (status, remedy) = match error {
        Error::Away(_) => (StatusCode::SERVICE_UNAVAILABLE, "Try again in a few seconds."),
        Error::Answer(_) => (
            StatusCode::BAD_GATEWAY,
            "The operator of this service can compare `identity.issuer` with the provider's metadata.",
        ),
        // The browser supplies the code. It may be used, expired or from another sign-in.
        Error::InvalidGrant(_) => (
            StatusCode::BAD_REQUEST,
            "Try again; if that does not help, whoever runs this service can compare the client's redirect URI at the \
             provider.",
        ),
        Error::Refused(_) => (
            StatusCode::BAD_GATEWAY,
            "Try again; if that does not help, whoever runs this service can compare `console.client_id` and \
             `console.client_secret` with the client at the provider.",
        ),
    };
    Notice::new(status, TITLE, format!("{}. {remedy}", capitalized(&error.to_string())))
        .again(to)
        .response()
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + letters.as_str()
}
