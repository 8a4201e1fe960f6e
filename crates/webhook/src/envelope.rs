//! The bytes of an event: written once, signed at each attempt, the same in every delivery and replay.

use chrono::{DateTime, SecondsFormat, Timelike, Utc};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::event_types::{EventType, VERSION};

/// Bytes of an envelope.
pub const LONGEST_ENVELOPE: usize = 8 * 1024;
pub const MOST_EVIDENCE_REFS: usize = 16;

const ID_PREFIX: &str = "svc:event:";
const ID_DIGITS: usize = 32;
/// The greatest integer that JSON carries without loss.
const GREATEST_SEQUENCE: u64 = (1 << 53) - 1;

/// An event, before it is written.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// `svc:event:` and 32 hex digits. It has no dot, which separates the parts that suite 1 signs.
    pub event_id: &'a str,
    pub event_type: &'static EventType,
    pub occurred_at: DateTime<Utc>,
    pub tenant_id: &'a str,
    /// From 1; none for test deliveries.
    pub sequence: Option<u64>,
    pub subject_ref: &'a str,
    pub actor_entity_id: Option<&'a str>,
    pub principal_entity_id: Option<&'a str>,
    pub reason_code: Option<&'a str>,
    /// `subject_ref` if none is given.
    pub correlation_id: Option<&'a str>,
    pub causation_id: Option<&'a str>,
    /// A message of `authority.event.v1` as JSON; members that are null are left out.
    pub data: &'a Map<String, Value>,
    pub evidence_refs: &'a [String],
}

/// Why an event cannot be written: a fault of the service, not of a caller.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    #[error("the event has {0} bytes; 8192 at most")]
    TooLong(usize),
    #[error("the event has {0} evidence_refs; 16 at most")]
    TooManyRefs(usize),
    #[error("event_id is not svc:event: and 32 hex digits")]
    Id,
    #[error("sequence is not from 1 to 9007199254740991")]
    Sequence,
    #[error("the event cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

#[derive(Serialize)]
struct Envelope<'a> {
    event_id: &'a str,
    event_type: &'a str,
    event_version: u32,
    occurred_at: String,
    tenant_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    subject_ref: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor_entity_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal_entity_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason_code: Option<&'a str>,
    correlation_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    causation_id: Option<&'a str>,
    data: Map<String, Value>,
    evidence_refs: &'a [String],
}

impl Event<'_> {
    /// Its canonical JSON (RFC 8785).
    pub fn canonical(&self) -> Result<Vec<u8>, EnvelopeError> {
        if !is_event_id(self.event_id) {
            return Err(EnvelopeError::Id);
        }
        if self.sequence.is_some_and(|sequence| !(1..=GREATEST_SEQUENCE).contains(&sequence)) {
            return Err(EnvelopeError::Sequence);
        }
        if self.evidence_refs.len() > MOST_EVIDENCE_REFS {
            return Err(EnvelopeError::TooManyRefs(self.evidence_refs.len()));
        }
        let bytes = serde_json_canonicalizer::to_vec(&Envelope {
            event_id: self.event_id,
            event_type: self.event_type.name(),
            event_version: VERSION,
            occurred_at: written_time(self.occurred_at),
            tenant_id: self.tenant_id,
            sequence: self.sequence,
            subject_ref: self.subject_ref,
            actor_entity_id: self.actor_entity_id,
            principal_entity_id: self.principal_entity_id,
            reason_code: self.reason_code,
            correlation_id: self.correlation_id.unwrap_or(self.subject_ref),
            causation_id: self.causation_id,
            data: without_nulls(self.data),
            evidence_refs: self.evidence_refs,
        })?;
        if bytes.len() > LONGEST_ENVELOPE {
            return Err(EnvelopeError::TooLong(bytes.len()));
        }
        Ok(bytes)
    }
}

fn is_event_id(text: &str) -> bool {
    let digits = text.strip_prefix(ID_PREFIX).unwrap_or_default();
    let lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.len() == ID_DIGITS && digits.bytes().all(lower_hex)
}

/// RFC 3339 with `Z`, and microseconds only when there are some.
fn written_time(time: DateTime<Utc>) -> String {
    let fraction = match time.nanosecond() / 1000 {
        0 => SecondsFormat::Secs,
        _ => SecondsFormat::Micros,
    };
    time.to_rfc3339_opts(fraction, true)
}

fn without_nulls(members: &Map<String, Value>) -> Map<String, Value> {
    let given = members.iter().filter(|(_, value)| !value.is_null());
    let inner = given.map(|(name, value)| match value {
        Value::Object(inner) => (name.clone(), Value::Object(without_nulls(inner))),
        other => (name.clone(), other.clone()),
    });
    inner.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    const ID: &str = "svc:event:0198c0ffee017c4f8a2d5b6e7f809a1b";

    fn event<'a>(data: &'a Map<String, Value>, evidence_refs: &'a [String]) -> Event<'a> {
        Event {
            event_id: ID,
            event_type: EventType::named("svc.authority.suspended").unwrap(),
            occurred_at: DateTime::from_timestamp(1_790_000_000, 0).unwrap(),
            tenant_id: "svc:tenant:acme",
            sequence: Some(7),
            subject_ref: "svc:del:acme:1",
            actor_entity_id: None,
            principal_entity_id: None,
            reason_code: None,
            correlation_id: None,
            causation_id: None,
            data,
            evidence_refs,
        }
    }

    fn members(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn members_without_a_value_are_left_out() {
        let data = members(&json!({"below": 2, "absent": null, "inner": {"b": null, "a": 1}}));
        let bytes = event(&data, &[]).canonical().unwrap();
        let expected = format!(
            "{{\"correlation_id\":\"svc:del:acme:1\",\"data\":{{\"below\":2,\"inner\":{{\"a\":1}}}},\
             \"event_id\":\"{ID}\",\"event_type\":\"svc.authority.suspended\",\"event_version\":1,\
             \"evidence_refs\":[],\"occurred_at\":\"2026-09-21T14:13:20Z\",\"sequence\":7,\
             \"subject_ref\":\"svc:del:acme:1\",\"tenant_id\":\"svc:tenant:acme\"}}"
        );
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    #[test]
    fn the_schema_has_every_member_and_no_other() {
        let (data, refs) = (Map::new(), ["svc:evidence:1".to_owned()]);
        let all = Event {
            actor_entity_id: Some("svc:agent:acme:a"),
            principal_entity_id: Some("svc:ent:acme:human:1"),
            reason_code: Some("delegation_suspended"),
            correlation_id: Some("svc:del:acme:0"),
            causation_id: Some(ID),
            occurred_at: DateTime::from_timestamp(1_790_000_000, 12_345_678).unwrap(),
            ..event(&data, &refs)
        };
        let written: Value = serde_json::from_slice(&all.canonical().unwrap()).unwrap();
        let names =
            |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        let schema = all.event_type.schema();
        assert_eq!(names(&written), names(&schema["properties"]));
        assert_eq!(written["occurred_at"], "2026-09-21T14:13:20.012345Z");
        assert_eq!(written["correlation_id"], "svc:del:acme:0");

        let least = Event { sequence: None, ..event(&data, &[]) };
        let written: Value = serde_json::from_slice(&least.canonical().unwrap()).unwrap();
        let required = schema["required"].as_array().unwrap().iter();
        let required = required.map(|name| name.as_str().unwrap().to_owned()).collect();
        assert_eq!(names(&written), required);
    }

    #[test]
    fn large_events_and_malformed_ids_are_refused() {
        let of_length = |length: usize| members(&json!({"a": "a".repeat(length)}));
        let rest = event(&of_length(0), &[]).canonical().unwrap().len();
        let data = of_length(LONGEST_ENVELOPE - rest);
        assert_eq!(event(&data, &[]).canonical().unwrap().len(), LONGEST_ENVELOPE);
        let data = of_length(LONGEST_ENVELOPE - rest + 1);
        assert!(matches!(event(&data, &[]).canonical(), Err(EnvelopeError::TooLong(8193))));

        let data = Map::new();
        let refs = vec!["svc:evidence:1".to_owned(); 17];
        assert!(event(&data, &refs[..16]).canonical().is_ok());
        assert!(matches!(event(&data, &refs).canonical(), Err(EnvelopeError::TooManyRefs(17))));
        for event_id in [
            "",
            "svc:event:",
            &ID[..41],
            &ID.to_uppercase(),
            &format!("{ID}0"),
            "svc:event:0198c0ffee017c4f8a2d5b6e7f809a.b",
        ] {
            let other = Event { event_id, ..event(&data, &[]) };
            assert!(matches!(other.canonical(), Err(EnvelopeError::Id)), "{event_id}");
        }
        for sequence in [0, GREATEST_SEQUENCE + 1] {
            let other = Event { sequence: Some(sequence), ..event(&data, &[]) };
            assert!(matches!(other.canonical(), Err(EnvelopeError::Sequence)));
        }
    }
}
