//! The impact of stops: the delegations, agents, requests and permissions that a stop concerns.

mod decisions;
mod impact;
mod scope;

pub(crate) use impact::of;
