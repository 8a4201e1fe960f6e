//! Idempotency keys: an effect happens once, and its answer is repeated for 24 hours.

mod sweep;

use chrono::TimeDelta;

pub use sweep::{keep_sweeping, sweep};

/// How long an answer is kept under its idempotency key.
pub const ANSWERS_KEPT: TimeDelta = TimeDelta::hours(24);
/// And one that holds a secret.
pub const SECRETS_KEPT: TimeDelta = TimeDelta::minutes(10);
