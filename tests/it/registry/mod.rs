//! The registry through REST on a real Postgres.

mod delegations;
mod flow;
mod policies;
mod records;
mod relationships;
mod rest;
