//! Messages, services, rows and rules, all generated from `../proto`.

pub mod access;
pub mod colour;
pub mod proto;
pub mod record;
pub mod schema;
pub mod service;
pub mod state;
mod unknown;
pub mod validate;
pub mod wire;

/// Every descriptor of `../proto` with its options: a serialised `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
