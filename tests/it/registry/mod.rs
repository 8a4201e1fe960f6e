//! The registry through REST on a real Postgres.

mod delegations;
mod flow;
mod once;
mod policies;
mod records;
mod relationships;
mod rest;
mod states;
