//! Events, and where they go.

mod audit;
mod browser;
pub(crate) mod delivery;
mod endpoints;
mod log;
mod notifications;
mod push;
mod retention;
