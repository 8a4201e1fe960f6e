//! Stage 3: policies, reality and the gate, and the approvals that their holds need.
//!
//! [`combined`] joins the results.

pub(crate) mod cedar_request;
pub(crate) mod combined;
pub(crate) mod evaluation;
pub(crate) mod needed;
pub(crate) mod people;
pub(crate) mod reality;
