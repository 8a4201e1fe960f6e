//! A bug on the way to a decision.

use authority_api::error::{ApiError, ErrorCode};

/// A part that does not serialise is a bug: it is logged, and there is no decision.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn fault(error: serde_json::Error) -> ApiError {
    tracing::error!(%error, "a decision's part does not serialise");
    ApiError::plain(ErrorCode::Internal)
}
