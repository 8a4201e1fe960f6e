//! The parsed content of a snapshot.

use authority_model::wire::Json;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

/// The data in the content, by its format.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Document {
    pub(super) sampled_at: Option<DateTime<Utc>>,
    pub(super) source_version: Option<String>,
    pub(super) observations: Vec<Json>,
}

/// An observation at a JSON Pointer (RFC 6901).
pub(super) fn observation(path: &str, value: Value) -> Json {
    Json([("path".to_owned(), json!(path)), ("value".to_owned(), value)].into_iter().collect())
}
