//! What the event of a decision says, on its way through the outbox: the recorder has it in memory, and the
//! sequencer need not read it from the decision's record.

use std::borrow::Cow;

use authority_decision::moment;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A decision that is told, as JSON in `event_outbox.decisions`. Members are only added.
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
    /// The subject, if that was a principal of the tenant: any other is a text that the caller chose.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub principal_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub authority_kind: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub delegation_id: Option<Cow<'a, str>>,
    /// The approval that it used.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<Cow<'a, str>>,
    /// As the record has it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<Cow<'a, str>>,
}
