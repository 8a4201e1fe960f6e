//! Policies: their texts and versions, the checks before an activation, observing versions, and the
//! cost of policies.

pub(crate) mod activations;
pub(crate) mod check;
pub(crate) mod cost;
mod observations;
mod observing;
pub(crate) mod policy;
mod second_person;
pub(crate) mod versions;
