//! Policies: their texts and versions, the checks before one is activated, and their cost.

pub(crate) mod activations;
pub(crate) mod check;
pub(crate) mod cost;
pub(crate) mod name_lookup;
pub(crate) mod policy;
pub(crate) mod versions;
