//! Enough stack for Cedar, on any thread.
//!
//! Cedar's parser and evaluator recurse, and a stack overflow aborts the process. The nesting of a text is
//! bounded (`policy_text.rs`); this is the stack that the bound needs. If the calling thread has less left,
//! the work runs on a new stack.

const MIB: usize = 1024 * 1024;
/// More than twice what texts of the greatest depth need without optimisation.
const PARSING: usize = 16 * MIB;
/// The same for evaluation. The service's worker threads have more, so that no decision allocates one.
pub(super) const EVALUATING: usize = 8 * MIB;

/// Parses, checks or validates a text.
pub(super) fn for_parsing<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(PARSING, PARSING + MIB, work)
}

/// Evaluates compiled statements.
pub(super) fn for_evaluating<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(EVALUATING, EVALUATING + MIB, work)
}
