//! The registry over REST, with a real PostgreSQL.

mod blast_radius;
mod by_admins;
mod delegations;
mod finding;
mod flow;
mod idempotency;
mod mcp;
mod observing;
mod policies;
mod policy_validation;
mod policy_warnings;
mod records;
mod relationships;
mod rest;
mod states;
mod sub_delegations;
mod two_people;
