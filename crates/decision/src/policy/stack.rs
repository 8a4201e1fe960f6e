//! Ensures enough stack for Cedar on any thread.
//!
//! Cedar's parser and evaluator recurse, and a stack overflow aborts the process. The nesting of a
//! text is bounded (`text.rs`). This module provides the stack that the bound requires. If the
//! calling thread has less left, the work runs on a new stack.

const MIB: usize = 1024 * 1024;
/// More than twice the stack that the deepest accepted texts need in a build without optimisation.
const PARSING: usize = 16 * MIB;
/// The stack for evaluation. The service's worker threads have a larger stack and need no new one.
pub(crate) const EVALUATING: usize = 8 * MIB;

/// Parses, checks or validates a text.
pub(crate) fn for_parsing<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(PARSING, PARSING + MIB, work)
}

/// Evaluates compiled statements.
pub(crate) fn for_evaluating<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(EVALUATING, EVALUATING + MIB, work)
}
