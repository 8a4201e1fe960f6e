//! Idempotency keys: an effect happens once, and its response is repeated for 24 hours.
//!
//! A key is claimed, and its response stored, in the transaction of the effect: either all of them
//! are committed or none is. The first statement claims the key and the last stores the response.
//! Another call with the same key waits for the key's row. The recorder commits many decisions at
//! once: it claims the keys of a batch and does not wait for a key. A key belongs to its caller:
//! other callers never receive its response. A refused request has no effect and is not stored; a
//! repetition is evaluated again.

mod answer;
mod batch;
mod claim;
mod error;
mod key;
mod sweep;

pub use answer::{Done, execute};
pub use batch::{ClaimBatch, KeepBatch};
pub use claim::FirstAnswer;
pub use error::Error;
pub use key::IdempotencyKey;
pub use sweep::{sweep, sweeper};
