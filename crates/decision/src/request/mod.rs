//! The request: the action that is asked for, with its amount, place and context.
//!
//! [`draft`] has the fields of a request and their rules. The other files have the values that
//! requests and authorities share.

pub mod amount;
pub(crate) mod countries;
pub mod currency;
pub mod draft;
pub mod input_schema;
pub mod jurisdiction;
pub(crate) mod obligations;

pub use self::draft::*;
