//! A change to a denied request or its records, and changes that help together.

use std::{collections::BTreeSet, ops::Deref};

use crate::{
    levels::{Decision, words},
    reason::Reason,
};
use serde::{Deserialize, Serialize};

words! {
    /// The kind of a change.
    Kind {
        Purpose "purpose",
        Amount "amount",
        Jurisdiction "jurisdiction",
        Delegation "delegation",
        Wait "wait",
        Grant "grant",
        Link "link",
        Principal "principal",
        Context "context",
        Declaration "declaration",
        Stop "stop",
        Quarantine "quarantine",
        Denial "denial",
    }
}

impl Kind {
    /// Whether the requester makes the change, in the request or its time. Otherwise people make it
    /// in the records.
    pub(super) const fn is_said(self) -> bool {
        matches!(
            self,
            Self::Purpose
                | Self::Amount
                | Self::Jurisdiction
                | Self::Delegation
                | Self::Wait
                | Self::Context
                | Self::Declaration
        )
    }
}

/// One change to the request or its records, for programs, with a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: Kind,
    /// The field of the request or of the record that changes.
    pub member: Option<String>,
    /// The new value; `None` if only the requester knows it, or if the field is removed.
    pub value: Option<String>,
    /// The record that changes, or that the change is about.
    pub id: Option<String>,
    /// The change as a sentence for people.
    pub sentence: String,
}

/// One to three changes that help together, and the resulting decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    pub changes: Vec<Change>,
    pub decision: Decision,
    pub reason_code: Reason,
}

/// Returns a change of this kind without a field, value and id.
pub(super) fn change(kind: Kind, sentence: String) -> Change {
    Change { kind, member: None, value: None, id: None, sentence }
}

/// Returns the distinct texts in order, without `but`.
pub(super) fn distinct<'t, T: Deref<Target = str> + Ord>(
    texts: impl IntoIterator<Item = &'t T>,
    but: Option<&str>,
) -> Vec<&'t T> {
    let mut seen = BTreeSet::new();
    let texts = texts.into_iter();
    texts.filter(|text| Some(&***text) != but && seen.insert(*text)).collect()
}
