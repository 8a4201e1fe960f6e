//! Months of decisions as files outside the database.
//!
//! `format/` defines the files, without I/O; `bucket/` stores them. `writer/` archives months,
//! reads back the written objects and removes the rows. `reader/` finds a decision in an archive.

pub mod bucket;
mod erasure;
mod error;
mod evidence;
pub mod format;
pub mod inspect;
mod manifest;
pub mod offline;
mod reader;
mod tidy;
mod writer;

pub use bucket::Bucket;
pub use erasure::{Erased, Eraser};
pub use error::Error;
pub use evidence::{Evidence, Page, ReadEvidence};
pub use reader::{Archived, Archives};
pub use writer::{
    Archiver, Parts, StepResult,
    worker::{worker, worker_without_archive},
};
