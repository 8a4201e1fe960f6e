//! What every service speaks: error codes and refusals, who calls, idempotency keys, page tokens,
//! deadlines.

pub mod deadline;
pub mod error;
pub mod idempotency;
pub mod identity;
pub mod page_token;
