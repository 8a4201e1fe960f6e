//! The page of a failed sign-in.

use super::provider::Error;
use crate::kit::{prelude::*, text::capitalized};

/// The error page if the provider is unavailable or refuses.
pub(super) fn failed(error: &Error, to: &str) -> Response {
    tracing::warn!(%error, "failed to complete a sign-in at the console");
    let (status, remedy) = match error {
        Error::Away(_) => (StatusCode::SERVICE_UNAVAILABLE, t::session::IN_A_FEW_SECONDS),
        Error::Answer(_) => (StatusCode::BAD_GATEWAY, t::session::CHECK_ISSUER),
        // The browser supplies the code. It may be used, expired or from another sign-in.
        Error::InvalidGrant(_) => (StatusCode::BAD_REQUEST, t::session::CHECK_REDIRECT),
        Error::Refused(_) => (StatusCode::BAD_GATEWAY, t::session::CHECK_CLIENT),
    };
    let text = t::session::failed(capitalized(&error.to_string()), remedy);
    Notice::new(status, t::session::NOT_SIGNED_IN, text).again(to).response()
}
