//! Keys: the ring, sealed secrets, signatures, published keys.

mod inventory;
mod published;
mod ring;
mod rotation;
mod services;
