//! Events, and where they are sent.

mod audit;
mod endpoints;
mod log;
mod notifications;
