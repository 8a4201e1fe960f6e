//! The states of records: one enum for each record, generated from the proto (build/states.rs).
//!
//! Messages and rows contain the state as text. [`crate::record::Record::known_state`] parses it.

use std::{
    fmt::{self, Display, Formatter},
    str::FromStr,
};

use diesel::{
    expression::AsExpression,
    pg::Pg,
    serialize::{self, Output, ToSql},
    sql_types::Text,
};

/// The error for a text that is not a state of its record type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownState;

impl Display for UnknownState {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str("is not a state of this record")
    }
}

impl std::error::Error for UnknownState {}

/// The state type of a record without states. It has no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stateless {}

impl Display for Stateless {
    fn fmt(&self, _: &mut Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

include!(concat!(env!("OUT_DIR"), "/states.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_is_written() {
        for state in ApprovalState::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
        }
        for text in ["", "Approved", "approved ", "active"] {
            assert_eq!(text.parse::<ApprovalState>(), Err(UnknownState), "{text}");
        }
    }

    #[test]
    fn a_record_ends_in_its_final_states() {
        assert_eq!(DelegationState::FINAL, [DelegationState::Revoked]);
        assert_eq!(
            ApprovalState::FINAL,
            [
                ApprovalState::Used,
                ApprovalState::Declined,
                ApprovalState::Expired,
                ApprovalState::Void
            ]
        );
        assert!(WorkspaceState::FINAL.is_empty());
    }

    #[test]
    fn a_record_begins_active_if_it_can() {
        assert_eq!(TenantState::default(), TenantState::Active);
        assert_eq!(PolicyState::default(), PolicyState::Active);
        assert_eq!(ApprovalState::default(), ApprovalState::Pending);
    }
}
