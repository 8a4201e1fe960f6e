//! Events, and where they go.

mod audit;
mod delivery;
mod endpoints;
mod log;
mod notifications;
