//! The code that all records share.
//!
//! [`entity`] has the traits that a record implements, and [`queries`] has its SQL. [`operations`]
//! and [`list`] have the operations: each operation checks the caller and the request, runs one
//! transaction and responds. This folder does not use the files of the records.

pub(crate) mod digest;
pub(crate) mod dns;
pub(crate) mod entity;
pub(crate) mod error;
pub(crate) mod event_demand;
pub(crate) mod export;
pub(crate) mod ineligible;
pub(crate) mod issuers;
pub(crate) mod list;
pub(crate) mod names;
pub(crate) mod operations;
pub(crate) mod page;
pub(crate) mod patch;
pub(crate) mod prelude;
pub(crate) mod queries;
pub(crate) mod references;
pub(crate) mod registry;
pub(crate) mod relationship;
pub(crate) mod rules;
pub(crate) mod search;
pub(crate) mod tenant;
pub(crate) mod version;
