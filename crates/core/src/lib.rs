//! The base of all services: the store, keys, the authority graph, stored decisions and packs,
//! counters, settings, checks of policy texts, background work. The services are separate crates: a
//! change of a handler recompiles only its own crate.

pub mod clock;
pub mod compute;
pub mod config;
pub mod decision_event;
pub mod erased_names;
pub mod graph;
pub mod keys;
pub mod log_limit;
pub mod log_nodes;
pub mod log_origin;
mod network;
pub mod policy_check;
pub mod shutdown;
pub mod spending;
pub mod store;
pub mod stored_decisions;
pub mod stored_packs;
pub mod time_zones;
pub mod worker;
