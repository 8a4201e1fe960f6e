//! The registry.
