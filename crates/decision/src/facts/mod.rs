//! Facts: all inputs of a decision besides its request and the time.
//!
//! [`gathered`] has the facts of one decision, [`records`] the records in them. The other files
//! read or compare these records: bounds, chains, terms, zones, and the state of reality.

pub(crate) mod access;
pub mod bounds;
pub mod budget;
pub mod chain;
pub mod delegation;
pub mod gate;
pub mod gathered;
pub mod hours;
pub mod joined_terms;
pub mod milder;
pub(crate) mod missing_zones;
pub mod reality;
pub mod records;
pub mod shared_entities;
pub mod sources;
pub mod stricter;
pub(crate) mod terms;
pub mod time_zone;
pub mod turn;
pub mod what_if;

pub use self::{gathered::*, records::*};
