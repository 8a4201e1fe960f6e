//! The keys of this installation: inventory, rotation, and the keys loaded in this process.
//!
//! Private keys are stored under envelope encryption and decrypted in memory (`custody.rs`).

mod console_session;
mod custody;
mod endpoint;
mod error;
mod held;
mod inventory;
pub mod key_ring;
mod log_key;
mod message_channel;
mod private_file;
mod public_key;
mod purpose;
pub mod push_key;
mod push_subscription;
mod revocation;
mod rewrap;
mod rotation;
mod workers;

pub use custody::Keys;
pub use endpoint::EndpointColumn;
pub use error::Error;
pub use inventory::{NewKey, SigningKey};
pub use public_key::{PublicKey, Status};
pub use purpose::Purpose;
pub use rotation::{NewRotation, Rotation};
