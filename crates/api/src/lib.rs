//! Code shared by all services: client errors, authentication, idempotency keys, page tokens,
//! deadlines.

pub mod credentials;
pub mod deadline;
pub mod error;
pub mod idempotency;
pub mod identity;
pub mod named_tenant;
pub mod page;
pub mod page_token;
pub mod rate_limit;
pub mod stream;
pub mod unique_json;
