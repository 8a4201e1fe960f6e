//! The settings of the service: where they come from, their defaults, and the rules of production.

mod addresses;
mod defaults;
mod load;
mod production;
mod secret;
mod settings;
mod text;
mod values;

pub use load::{Error, Sources};
pub use secret::Secret;
pub use settings::*;
