//! Idempotency keys: an effect happens once, and its answer is repeated for 24 hours.
//!
//! A key is claimed and its answer kept in the effect's own transaction, so that there is neither an
//! effect without its answer nor an answer without its effect. The first statement claims the key and the
//! last keeps the answer; another call with that key waits at its row. The recorder, which commits many
//! decisions at once, does the same for a batch and waits for nobody. A key is its caller's own: nobody
//! is answered what another was. A refused request has no effect and is not kept: it is judged anew.

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

/// How long an answer is kept under its idempotency key.
const ANSWERS_KEPT: TimeDelta = TimeDelta::hours(24);
/// And one that holds a secret.
const SECRETS_KEPT: TimeDelta = TimeDelta::minutes(10);
