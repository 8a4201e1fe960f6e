//! Internal errors while making a decision.

use authority_api::error::{ApiError, ErrorCode};

/// Logs a serialisation error, which is a bug. The decision is not made.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn fault(error: serde_json::Error) -> ApiError {
    tracing::error!(%error, "failed to serialise a part of a decision");
    ApiError::plain(ErrorCode::Internal)
}
