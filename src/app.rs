//! Connects all other modules: builds the services into one router and serves it.

mod acts;
mod addresses;
mod build;
mod connections;
mod database;
mod deadline;
mod deciding;
pub mod demo;
mod descriptors;
mod direct;
mod directory;
mod document;
mod environment;
mod error;
mod front;
mod gauges;
mod grpc;
mod host;
mod issuers;
mod mail;
mod measure;
mod named;
mod overload;
mod pretty;
mod readiness;
mod serve;
mod served;
mod stream_deadline;
mod streams;
mod wiring;
mod wrapped;

pub use build::{App, Parts};
pub use database::{Database, Error as DatabaseError};
pub use error::Error;
pub use gauges::Gauges;
pub use named::check;
pub use serve::{Failure, require_installation, reset, serve, with_app};

pub use crate::directory::{OPENAPI, contract};
