//! The keys of this installation: their inventory, their rotation, and those that this process holds.
//!
//! Private keys are at rest under envelope encryption, in memory ready for use (`custody.rs`).

mod custody;
mod error;
mod inventory;
pub mod key_ring;
mod public_key;
mod rotation;
mod workers;

pub use custody::{Keys, Purpose};
pub use error::Error;
pub use inventory::{NewKey, SigningKey};
pub use public_key::{PublicKey, Status};
pub use rotation::{NewRotation, Rotation};
