//! Events that have no number yet.

use std::{borrow::Cow, collections::HashMap};

use authority_decision::{Decision, Reason};
use authority_ledger::decision_event::DecisionEvent;
use authority_webhook::{
    envelope::{EnvelopeError, Event, canonical_data, sorted_data},
    event_types::EventType,
};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use crate::{
    decided::{self, Decided},
    outbox::{About, OutboxRow, Waiting, is_decision},
};

const PACKS: &str = "svc.evidence_pack.";

/// An event that has no id and no number yet.
pub(crate) struct Told<'a> {
    pub(crate) tenant_id: &'a str,
    pub(crate) event_type: &'static EventType,
    occurred_at: DateTime<Utc>,
    /// The principal that the event is about.
    principal_id: Option<Cow<'a, str>>,
    subject_ref: Cow<'a, str>,
    actor_id: Option<&'a str>,
    reason_code: Option<Cow<'a, str>>,
    correlation_id: Option<&'a str>,
    data: Box<RawValue>,
}

/// The fields are in the order of RFC 8785.
#[derive(Serialize)]
struct AllowedData<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authority_kind: Option<&'a str>,
    decision: &'a str,
    decision_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    delegation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_until: Option<&'a str>,
}

/// The fields are in the order of RFC 8785.
#[derive(Serialize)]
struct DeniedData<'a> {
    decision_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    delegation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_id: Option<&'a str>,
}

impl<'a> Told<'a> {
    pub(crate) fn of(
        waiting: Waiting<'a>,
        records: &'a HashMap<String, Decided>,
    ) -> Result<Self, EnvelopeError> {
        let record = decided::named(&waiting.about).and_then(|id| records.get(id));
        match (waiting.about, record) {
            (About::Decision { event_type, event }, Some(record)) => {
                let principal_id = record.principal_id.as_deref().map(Into::into);
                let event = DecisionEvent { principal_id, ..event };
                Self::of_decision(waiting.tenant_id, event_type, event)
            }
            (About::Decision { event_type, event }, None) => {
                Self::of_decision(waiting.tenant_id, event_type, event)
            }
            (About::Change { event_type, .. }, Some(record)) if is_decision(event_type) => {
                Self::of_decision(waiting.tenant_id, event_type, record.event())
            }
            (About::Change { event_type, subject_ref, row }, record) => Ok(Self {
                tenant_id: waiting.tenant_id,
                event_type,
                occurred_at: row.occurred_at,
                principal_id: row.principal_entity_id.as_deref().map(Into::into),
                subject_ref: subject_ref.into(),
                actor_id: row.actor_entity_id.as_deref(),
                reason_code: row.reason_code.as_deref().map(Into::into),
                correlation_id: row.correlation_id.as_deref(),
                data: of_change(row, record)?,
            }),
        }
    }

    fn of_decision(
        tenant_id: &'a str,
        event_type: &'static EventType,
        event: DecisionEvent<'a>,
    ) -> Result<Self, EnvelopeError> {
        Ok(Self {
            tenant_id,
            event_type,
            occurred_at: event.evaluated_at,
            data: of_decision(&event)?,
            principal_id: event.principal_id,
            subject_ref: event.decision_id,
            actor_id: None,
            reason_code: Some(event.reason_code),
            correlation_id: None,
        })
    }

    /// Returns the canonical bytes of the event.
    ///
    /// If the event exceeds the size limit, its data is left out. The event itself is kept, because
    /// receivers would wait for a missing number forever.
    pub(crate) fn bytes(&self, event_id: &str, sequence: i64) -> Result<Vec<u8>, EnvelopeError> {
        let is_of_pack = self.event_type.name().starts_with(PACKS);
        let refs = Vec::from_iter(is_of_pack.then(|| self.subject_ref.clone().into_owned()));
        let event = Event {
            event_id,
            event_type: self.event_type,
            occurred_at: self.occurred_at,
            tenant_id: self.tenant_id,
            sequence: u64::try_from(sequence).ok(),
            subject_ref: &self.subject_ref,
            actor_entity_id: self.actor_id,
            principal_entity_id: self.principal_id.as_deref(),
            reason_code: self.reason_code.as_deref(),
            correlation_id: self.correlation_id,
            causation_id: None,
            data: &self.data,
            evidence_refs: &refs,
        };
        event.canonical().or_else(|error| {
            let event_type = self.event_type.name();
            tracing::error!(%error, event.type = event_type, "wrote an event without its data");
            let none = canonical_data(&Map::new())?;
            Event { data: &none, evidence_refs: &[], ..event }.canonical()
        })
    }
}

fn of_decision(event: &DecisionEvent<'_>) -> Result<Box<RawValue>, EnvelopeError> {
    if event.decision == Decision::Deny.word() {
        return sorted_data(&DeniedData {
            decision_id: &event.decision_id,
            delegation_id: event.delegation_id.as_deref(),
            stage: Reason::from_word(&event.reason_code).map(|reason| reason.stage().word()),
            tool_id: event.tool_id.as_deref(),
        });
    }
    sorted_data(&AllowedData {
        approval_id: event.approval_id.as_deref(),
        authority_kind: event.authority_kind.as_deref(),
        decision: &event.decision,
        decision_id: &event.decision_id,
        delegation_id: event.delegation_id.as_deref(),
        tool_id: event.tool_id.as_deref(),
        valid_until: event.valid_until.as_deref(),
    })
}

/// Returns the row's data, plus the tool and delegation of a decision that waits for approval.
fn of_change(row: &OutboxRow, record: Option<&Decided>) -> Result<Box<RawValue>, EnvelopeError> {
    let none = Map::new();
    let own = row.data.as_object().unwrap_or(&none);
    let Some(DecisionEvent { tool_id, delegation_id, .. }) = record.map(Decided::event) else {
        return canonical_data(own);
    };
    let mut data = own.clone();
    for (name, value) in [("tool_id", tool_id), ("delegation_id", delegation_id)] {
        data.extend(value.map(|value| (name.to_owned(), Value::from(value))));
    }
    canonical_data(&data)
}
