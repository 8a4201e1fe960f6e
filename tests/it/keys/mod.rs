//! Keys: the ring, sealed secrets, signatures, what is published.

mod inventory;
mod published;
mod ring;
mod rotation;
mod services;
