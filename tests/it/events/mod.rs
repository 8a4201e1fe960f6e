//! Events, and where they are sent.

mod endpoints;
mod log;
mod notifications;
