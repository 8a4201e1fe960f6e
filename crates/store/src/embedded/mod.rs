//! An embedded Postgres server, for installations without a database of their own. It is found,
//! initialised, started, joined and stopped here.
//!
//! Each data directory has one server for any number of processes. The processes coordinate with
//! two locks: `launch.lock` is held while a process starts or stops the server, and `users.lock` is
//! shared by all users. The last user to leave stops the server. A killed process leaves the server
//! running, and the next process joins it.

mod elsewhere;
mod error;
mod launch;
mod options;
mod place;
mod process;
mod programs;
mod remove;
mod server;

pub use self::{
    error::Error,
    options::{LOGIN, OWNER, Options},
    remove::remove,
    server::Embedded,
};
