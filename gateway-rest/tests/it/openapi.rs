//! OpenAPI.
