//! Events and their consumers.

mod audit;
mod browser;
pub(crate) mod delivery;
mod endpoints;
mod failing_streams;
mod log;
mod messages;
mod notifications;
mod push;
mod retention;
