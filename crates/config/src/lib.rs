//! The settings of the service: where they come from, their defaults, and the rules of production.

mod addresses;
mod choices;
mod defaults;
mod issuers;
mod load;
mod production;
mod secret;
mod settings;
mod text;
mod tls;
mod values;

pub use choices::{OpenToAll, SigningAlgorithm, TlsVersion};
pub use load::{Error, Sources};
pub use secret::Secret;
pub use settings::*;
