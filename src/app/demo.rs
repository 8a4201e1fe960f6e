//! The demonstration tenant.
