//! The bounds of a filter.

/// The maximum length of a filter's text, in bytes.
pub const LONGEST_FILTER: usize = 1024;

/// The maximum nesting of parentheses and negations, including the filter itself.
pub const DEEPEST: usize = 16;

/// The maximum number of paths, literals, tests and operators in a filter.
pub const MOST_NODES: usize = 128;
