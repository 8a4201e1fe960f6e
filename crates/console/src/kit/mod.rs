//! The parts of every page: the frame, forms, lists, texts, calls of the API, and the descriptors of
//! records.

pub(crate) mod assets;
pub(crate) mod calls;
pub(crate) mod choice;
pub(crate) mod done;
pub(crate) mod escape;
pub(crate) mod form;
pub(crate) mod frame;
pub(crate) mod kinds;
pub(crate) mod known_actions;
pub(crate) mod latency;
pub(crate) mod lists;
pub(crate) mod menu;
pub(crate) mod names;
pub(crate) mod notice;
pub(crate) mod nowhere;
pub(crate) mod page;
pub(crate) mod prelude;
pub(crate) mod problem;
pub(crate) mod query;
pub(crate) mod rpc;
pub(crate) mod show;
pub(crate) mod typed;
pub(crate) mod unknown_names;
pub(crate) mod view;

pub(crate) use crate::texts::{meanings, words as text};
