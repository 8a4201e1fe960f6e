//! The bytes of an event: written once, signed at each attempt, identical in every delivery and
//! replay.

use authority_ids::RecordId;
use chrono::{DateTime, SecondsFormat, Timelike, Utc};
use serde::Serialize;
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use crate::event_types::{EventType, VERSION};

/// The maximum size of an event's JSON, in bytes.
pub const LONGEST_ENVELOPE: usize = 8 * 1024;
pub const MOST_EVIDENCE_REFS: usize = 16;
/// The initial capacity in bytes. Most envelopes fit and need one allocation.
const USUAL_ENVELOPE: usize = 1024;

const ID_DIGITS: usize = 32;
/// The greatest integer that every JSON reader represents exactly.
const GREATEST_SEQUENCE: u64 = (1 << 53) - 1;

/// An event before serialization.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// `svc:event:` and 32 hex digits. It has no dot: dots separate the parts that
    /// `standard-webhooks/v1` signs.
    pub event_id: &'a str,
    pub event_type: &'static EventType,
    pub occurred_at: DateTime<Utc>,
    pub tenant_id: &'a str,
    /// The event's sequence number, from 1; `None` for test deliveries.
    pub sequence: Option<u64>,
    pub subject_ref: &'a str,
    pub actor_entity_id: Option<&'a str>,
    pub principal_entity_id: Option<&'a str>,
    pub reason_code: Option<&'a str>,
    /// Defaults to `subject_ref`.
    pub correlation_id: Option<&'a str>,
    pub causation_id: Option<&'a str>,
    /// A message of `authority.event.v1`, as [`canonical_data`] writes it.
    pub data: &'a RawValue,
    pub evidence_refs: &'a [String],
}

/// The reason an event cannot be written. It is a fault of the service, not of a caller.
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

/// The envelope as JSON. Its fields are in the order of RFC 8785, to avoid sorting them for each
/// event: there can be as many events as decisions. `serde_json` writes strings and integers below
/// 2^53 as the RFC requires.
#[derive(Serialize)]
struct Envelope<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    actor_entity_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causation_id: Option<&'a str>,
    correlation_id: &'a str,
    data: &'a RawValue,
    event_id: &'a str,
    event_type: &'a str,
    event_version: u32,
    evidence_refs: &'a [String],
    occurred_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal_entity_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason_code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    subject_ref: &'a str,
    tenant_id: &'a str,
}

impl Event<'_> {
    /// Returns the event's canonical JSON (RFC 8785).
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
        let envelope = Envelope {
            actor_entity_id: self.actor_entity_id,
            causation_id: self.causation_id,
            correlation_id: self.correlation_id.unwrap_or(self.subject_ref),
            data: self.data,
            event_id: self.event_id,
            event_type: self.event_type.name(),
            event_version: VERSION,
            evidence_refs: self.evidence_refs,
            occurred_at: written_time(self.occurred_at),
            principal_entity_id: self.principal_entity_id,
            reason_code: self.reason_code,
            sequence: self.sequence,
            subject_ref: self.subject_ref,
            tenant_id: self.tenant_id,
        };
        let mut bytes = Vec::with_capacity(USUAL_ENVELOPE);
        serde_json::to_writer(&mut bytes, &envelope)?;
        debug_assert!(is_canonical(&bytes), "{}", String::from_utf8_lossy(&bytes));
        if bytes.len() > LONGEST_ENVELOPE {
            return Err(EnvelopeError::TooLong(bytes.len()));
        }
        Ok(bytes)
    }
}

fn is_event_id(text: &str) -> bool {
    let digits = text.strip_prefix(RecordId::EVENT).unwrap_or_default();
    let lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.len() == ID_DIGITS && digits.bytes().all(lower_hex)
}

/// RFC 3339 with `Z`, with microseconds unless they are zero.
fn written_time(time: DateTime<Utc>) -> String {
    let fraction = match time.nanosecond() / 1000 {
        0 => SecondsFormat::Secs,
        _ => SecondsFormat::Micros,
    };
    time.to_rfc3339_opts(fraction, true)
}

/// An event's data as canonical JSON, without members that are null.
pub fn canonical_data(members: &Map<String, Value>) -> Result<Box<RawValue>, EnvelopeError> {
    let text = serde_json_canonicalizer::to_string(&without_nulls(members))?;
    Ok(RawValue::from_string(text)?)
}

/// An event's data as canonical JSON, without sorting.
///
/// The type must have its members in the order of RFC 8785, omit members without a value, and
/// contain only strings.
pub fn sorted_data(members: &impl Serialize) -> Result<Box<RawValue>, EnvelopeError> {
    Ok(to_raw_value(members)?)
}

fn is_canonical(bytes: &[u8]) -> bool {
    let read: Option<Value> = serde_json::from_slice(bytes).ok();
    let sorted = read.and_then(|value| serde_json_canonicalizer::to_vec(&value).ok());
    sorted.as_deref() == Some(bytes)
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

    fn event<'a>(data: &'a RawValue, evidence_refs: &'a [String]) -> Event<'a> {
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

    fn members(value: &Value) -> Box<RawValue> {
        canonical_data(value.as_object().unwrap()).unwrap()
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
        let (data, refs) = (members(&json!({})), ["svc:evidence:1".to_owned()]);
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
        assert_eq!(all.canonical().unwrap(), serde_json_canonicalizer::to_vec(&written).unwrap());
        assert_eq!(written["occurred_at"], "2026-09-21T14:13:20.012345Z");
        assert_eq!(written["correlation_id"], "svc:del:acme:0");

        let least = Event { sequence: None, ..event(&data, &[]) };
        let written: Value = serde_json::from_slice(&least.canonical().unwrap()).unwrap();
        let required = schema["required"].as_array().unwrap().iter();
        let required = required.map(|name| name.as_str().unwrap().to_owned()).collect();
        assert_eq!(names(&written), required);
    }

    /// Ids and codes need no escapes. If a text needed one, it would be escaped as in RFC 8785.
    #[test]
    fn texts_are_escaped_as_the_general_writer_does() {
        let text: String =
            (0..=0x17f).filter_map(char::from_u32).chain("\u{2028}🦀".chars()).collect();
        let data = members(&json!({"é": text, "a": text, "Z": [1, text]}));
        let odd = Event { subject_ref: &text, ..event(&data, &[]) };
        let written: Value = serde_json::from_slice(&odd.canonical().unwrap()).unwrap();
        assert_eq!(written["subject_ref"], text.as_str());
        assert_eq!(odd.canonical().unwrap(), serde_json_canonicalizer::to_vec(&written).unwrap());
    }

    #[test]
    fn large_events_and_malformed_ids_are_refused() {
        let of_length = |length: usize| members(&json!({"a": "a".repeat(length)}));
        let rest = event(&of_length(0), &[]).canonical().unwrap().len();
        let data = of_length(LONGEST_ENVELOPE - rest);
        assert_eq!(event(&data, &[]).canonical().unwrap().len(), LONGEST_ENVELOPE);
        let data = of_length(LONGEST_ENVELOPE - rest + 1);
        assert!(matches!(event(&data, &[]).canonical(), Err(EnvelopeError::TooLong(8193))));

        let data = members(&json!({}));
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
