//! Stack enough for Cedar, on whatever thread it is called.
//!
//! Cedar's parser and evaluator recurse, and a stack that overflows ends the process. How deep a text
//! nests is bounded (`policy_text.rs`); here is the stack that this depth needs. Where the calling
//! thread has less left, the work runs on a stack of its own.

const MIB: usize = 1024 * 1024;
/// For texts of the greatest depth, without optimisation, more than twice over.
const PARSING: usize = 16 * MIB;
/// The same for evaluating. The workers of the service have more, so that no decision asks for it.
pub(super) const EVALUATING: usize = 8 * MIB;

/// Parses, checks or validates a text.
pub(super) fn for_parsing<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(PARSING, PARSING + MIB, work)
}

/// Evaluates compiled statements.
pub(super) fn for_evaluating<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(EVALUATING, EVALUATING + MIB, work)
}
