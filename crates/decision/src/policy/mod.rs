//! Policies: their texts, compiled statements and targets, and the checks before activation.
//!
//! This module is not a stage. Facts contain compiled policies, and the rules evaluate them.

pub(crate) mod compiled;
pub(crate) mod cost;
pub mod cost_bound;
pub mod diff;
pub(crate) mod error;
pub(crate) mod index;
pub(crate) mod jurisdiction_comparison;
pub(crate) mod reads;
pub(crate) mod stack;
pub mod statement;
pub(crate) mod target;
pub(crate) mod text;
pub(crate) mod tokens;
pub mod validation;
