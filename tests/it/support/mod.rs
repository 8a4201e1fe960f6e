//! The support code of the tests.

pub(crate) mod app;
pub(crate) mod database;
mod line;

pub(crate) use app::{Client, TestApp, Wishes, asking, http};
pub(crate) use line::Line;
