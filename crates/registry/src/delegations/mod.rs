//! Delegations: their place in a chain, attenuation, moves between states, renewal and impact.

pub(crate) mod attenuation;
pub(crate) mod blast_radius;
pub(crate) mod counters;
pub(crate) mod delegating_key;
pub(crate) mod delegation;
pub(crate) mod line;
pub(crate) mod moves;
mod party;
pub(crate) mod place;
pub(crate) mod renewal;
