//! Messages, services, rows and rules, all generated from `../proto`.

pub mod access;
pub mod colour;
mod free_form;
mod pattern;
pub mod proto;
pub mod record;
pub mod schema;
pub mod service;
pub mod state;
pub mod stored_record;
pub mod surfaces;
mod tenant_ids;
mod unknown;
pub mod validate;
pub mod wire;

/// All descriptors of `../proto` with their options: a serialised `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
