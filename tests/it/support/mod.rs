//! What the tests stand on.

pub(crate) mod app;
pub(crate) mod database;

pub(crate) use app::{Client, TestApp, Wishes, asking, http};
