//! The support code of the tests.

pub(crate) mod app;
pub(crate) mod database;
mod line;

use authority_core::worker::{Supervisor, Worker};

pub(crate) use app::{Client, TestApp, Wishes, asking, http};
pub(crate) use line::Line;

/// Runs background work until the test's runtime ends.
pub(crate) fn run_workers(workers: impl IntoIterator<Item = Worker>) {
    Supervisor::default().run(workers);
}
