//! Stages 1 and 2: the authorities that cover the action, their bounds, and the purpose.
//!
//! [`choose`] tries the [`candidate`]s in order. Each is checked against the table of
//! docs/reference/decision.md.

pub(crate) mod candidate;
pub(crate) mod case;
pub(crate) mod choose;
pub(crate) mod exceeded;
pub(crate) mod input_check;
pub(crate) mod input_types;
pub(crate) mod limits;
pub(crate) mod purpose;
pub(crate) mod trace_step;
pub(crate) mod used;
