//! The decision core: `decide(request, facts, at)`, pure.
//!
//! No clock, no input or output, no randomness, no unordered iteration: seal the arguments, run
//! it again anywhere, get the same verdict. docs: decision.md of the design.

pub mod amount;
pub mod bounds;
pub mod facts;
pub mod gate;
pub mod hours;
pub mod levels;
pub mod moment;
pub mod pattern;
pub mod policy;
pub mod reason;
pub mod request;
pub mod trace;
pub mod verdict;

/// The version of the rules in this folder; every record names it.
pub const SEMANTICS: &str = "authority/1";

pub use self::{
    amount::Amount,
    bounds::Bounds,
    facts::{Facts, FactsDocument, Gathered},
    levels::Decision,
    pattern::Pattern,
    policy::{CompiledPolicy, PolicyIndex, PolicyKeys, PolicyReference, Target},
    reason::Reason,
    request::{Draft, Request},
    verdict::Verdict,
};
