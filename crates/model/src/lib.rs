//! Messages, services, rows, rules and routes, all generated from `../proto`.

pub mod access;
pub mod proto;
pub mod record;
pub mod rest;
pub mod schema;
pub mod service;
pub mod state;
pub mod validate;
pub mod wire;

/// Every descriptor of `../proto` with its options: a serialised `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
