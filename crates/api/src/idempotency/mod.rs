//! Idempotency keys: an effect happens once, and its response is repeated for 24 hours.
//!
//! A key is claimed and its response stored in the effect's own transaction, so that neither exists
//! without the other. The first statement claims the key and the last stores the response; another
//! call with that key waits on its row. The recorder, which commits many decisions at once, does
//! the same for a batch and does not wait. A key belongs to its caller: nobody receives another
//! caller's response. A refused request has no effect and is not stored: a repetition is evaluated
//! again.

mod answer;
mod batch;
mod claim;
mod error;
mod key;
mod sweep;

use chrono::TimeDelta;

pub use answer::{Done, execute};
pub use batch::{ClaimBatch, KeepBatch};
pub use claim::FirstAnswer;
pub use error::Error;
pub use key::IdempotencyKey;
pub use sweep::{sweep, sweeper};

/// How long a response is kept under its idempotency key.
const ANSWERS_KEPT: TimeDelta = TimeDelta::hours(24);
/// How long a response with a secret is kept.
const SECRETS_KEPT: TimeDelta = TimeDelta::minutes(10);
