//! The data of a decision's event, stored in the outbox.
//!
//! The recorder has this data in memory, which saves the sequencer from reading the decision's
//! record.

use std::borrow::Cow;

use authority_decision::moment;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A decision, as JSON in `event_outbox.decisions`. Fields are only ever added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionEvent<'a> {
    #[serde(borrow)]
    pub decision_id: Cow<'a, str>,
    #[serde(borrow)]
    pub decision: Cow<'a, str>,
    #[serde(borrow)]
    pub reason_code: Cow<'a, str>,
    #[serde(with = "moment")]
    pub evaluated_at: DateTime<Utc>,
    /// The subject, if it is a principal of the tenant. Any other subject is a text of the caller
    /// and is left out.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub principal_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub authority_kind: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub delegation_id: Option<Cow<'a, str>>,
    /// The approval that the decision used.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<Cow<'a, str>>,
    /// The same text as in the record.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<Cow<'a, str>>,
}
