//! How long responses are kept.

use chrono::TimeDelta;

/// How long a response is kept under its idempotency key.
pub(super) const ANSWERS_KEPT: TimeDelta = TimeDelta::hours(24);

/// How long a response with a secret is kept.
pub(super) const SECRETS_KEPT: TimeDelta = TimeDelta::minutes(10);
