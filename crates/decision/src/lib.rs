//! The decision core. [`decide`] is a pure function.
//!
//! It has no clock, I/O, randomness or unordered iteration: the same arguments always give the same
//! verdict. The stages are folders: request, facts, authority, rules, verdict. A stage uses only
//! earlier stages. `policy` is beside them: facts contain policies, and the rules evaluate them.

mod authority;
pub mod facts;
pub mod hidden;
pub mod hooks;
pub mod levels;
pub mod moment;
mod own_reason;
pub mod pattern;
mod policy;
pub mod reason;
pub mod request;
mod rules;
pub mod verdict;

pub use self::{
    authority::{
        limits::counters_needed,
        purpose::{Admission, admit},
    },
    facts::{
        bounds::{self, Bounds},
        budget::{self, Budget},
        chain, delegation, gate,
        gathered::{Facts, FactsDocument, Gathered},
        hours,
        joined_terms::JoinedTerms,
        milder, reality, records, shared_entities, stricter, time_zone, turn,
        what_if::PolicyChange,
    },
    levels::Decision,
    own_reason::OwnReason,
    pattern::Pattern,
    policy::{
        compiled::{CompiledPolicy, PolicyReference},
        cost_bound, diff,
        error::PolicyError,
        index::{PolicyIndex, PolicyKeys},
        statement,
        target::Target,
        validation,
    },
    reason::Reason,
    request::{
        amount::Amount,
        currency,
        draft::{Draft, Request},
        input_schema, jurisdiction,
    },
    verdict::{
        decide::{decide, judge_again},
        observed::{decide_and_observe, observe},
        outcome::Verdict,
        permission_status::{PermissionStatus, StopCondition},
        remedy, sentences, trace,
    },
};

/// The version of the rules in this crate. Every record contains it.
pub const SEMANTICS: &str = "authority/1";

#[cfg(test)]
mod tests;
