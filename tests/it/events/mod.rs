//! Events, and where they go.

mod audit;
mod browser;
mod delivery;
mod endpoints;
mod log;
mod notifications;
