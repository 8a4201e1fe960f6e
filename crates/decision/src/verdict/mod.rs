//! Stage 4: the verdict, its trace, the state of its permission, and remedies for a denial.
//!
//! [`decide`] composes the stages.

pub(crate) mod asked_before;
pub mod decide;
pub mod observed;
pub mod outcome;
pub mod permission_status;
pub mod remedy;
pub mod sentences;
pub mod trace;
pub(crate) mod trace_terms;
pub(crate) mod unsupported;

pub use self::outcome::{Claims, Verdict};
pub use crate::{
    authority::{
        limits::CounterClaim,
        used::{AuthorityKind, AuthorityUsed},
    },
    rules::{evaluation::HeldBy, needed::ApprovalsNeeded, reality::HeldByReality},
};
