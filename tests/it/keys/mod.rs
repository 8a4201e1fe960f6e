//! Keys: the ring, sealed secrets, signatures, what is published.

mod door;
mod inventory;
mod published;
mod ring;
mod rotation;
