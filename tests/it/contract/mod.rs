//! Checks that the service behaves as its published contract describes.

mod absence;
mod bounds;
mod clients;
mod closed_filters;
mod document;
mod documentation;
mod documented;
mod example_schemas;
mod examples;
mod filters;
mod generated;
mod headers;
mod libraries;
mod ok;
mod operations;
mod page_tokens;
mod pages;
mod python_library;
mod rate_limits;
mod reference;
mod released;
mod shape;
mod specification;
mod tenants;
mod typed_client;
mod typescript_library;
mod unknown_fields;

use serde_json::Value;

use crate::support::TestApp;

/// The document as served.
async fn document(app: &TestApp) -> Value {
    let (status, document) = app.client("").get("/openapi").await;
    assert_eq!(status, 200);
    document
}
