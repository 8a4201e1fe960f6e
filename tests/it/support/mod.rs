//! The support code of the tests.

pub(crate) mod app;
pub(crate) mod database;
mod grpc_web;
mod line;
pub(crate) mod wire;

use authority_core::worker::{Supervisor, Worker};

pub(crate) use app::{Client, TestApp, Wishes, asking, evaluate, http};
pub(crate) use line::Line;

/// Runs background work until the test's runtime ends.
pub(crate) fn run_workers(workers: impl IntoIterator<Item = Worker>) {
    Supervisor::default().run(workers);
}
