//! Keys: the key ring, encrypted secrets, signatures, published keys.

mod bound_scopes;
mod inventory;
mod published;
mod ring;
mod rotation;
mod services;
