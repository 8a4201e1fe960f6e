//! The rows of the event log. A row has up to [`MOST_IN_ROW`] consecutive events of a tenant.

use std::{borrow::Cow, collections::BTreeSet};

use authority_ids::{EventRef, RecordId};
use authority_store::new_id;
use bytes::Bytes;
use diesel::{
    QueryResult, QueryableByName,
    result::Error as Sql,
    sql_types::{BigInt, Bytea, Integer, Text},
};
use serde::Deserialize;

/// The most events in a row. Reading one event reads its whole row.
pub(crate) const MOST_IN_ROW: usize = 64;

/// An event's id ends with the event's place in its row, in this many hexadecimal digits.
const PLACE_DIGITS: usize = 4;
/// Separates envelopes. Canonical JSON does not contain it.
const LINE_FEED: u8 = b'\n';

/// An event of the log.
pub(crate) struct Event {
    pub(crate) id: EventRef,
    pub(crate) sequence: i64,
    pub(crate) event_type: String,
    /// The exact bytes of the event's envelope (RFC 8785).
    pub(crate) body: Bytes,
}

/// A row that is being filled.
pub(crate) struct NewRow {
    /// The id of the first event.
    pub(crate) id: EventRef,
    pub(crate) last_sequence: i64,
    pub(crate) size: usize,
    event_types: BTreeSet<&'static str>,
    pub(crate) bodies: Vec<u8>,
}

impl NewRow {
    pub(crate) fn new() -> Self {
        Self {
            id: row_id(&RecordId::new("event", new_id()).as_str().into()),
            last_sequence: 0,
            size: 0,
            event_types: BTreeSet::new(),
            bodies: Vec::new(),
        }
    }

    /// Returns the id of the event that is added next.
    pub(crate) fn next_id(&self) -> EventRef {
        at_place(&self.id, self.size)
    }

    /// Adds the event with the next sequence.
    pub(crate) fn push(&mut self, sequence: i64, event_type: &'static str, body: &[u8]) {
        if self.size > 0 {
            self.bodies.push(LINE_FEED);
        }
        self.bodies.extend_from_slice(body);
        self.event_types.insert(event_type);
        self.last_sequence = sequence;
        self.size += 1;
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.size >= MOST_IN_ROW
    }

    /// Returns the types of the events, with spaces between them.
    pub(crate) fn event_types(&self) -> String {
        self.event_types.iter().copied().collect::<Vec<_>>().join(" ")
    }
}

/// A stored row.
#[derive(QueryableByName)]
pub(crate) struct StoredRow {
    #[diesel(sql_type = Text, deserialize_as = String)]
    pub(crate) id: EventRef,
    #[diesel(sql_type = BigInt)]
    pub(crate) last_sequence: i64,
    #[diesel(sql_type = Integer)]
    pub(crate) size: i32,
    #[diesel(sql_type = Text)]
    pub(crate) event_types: String,
    #[diesel(sql_type = Bytea, deserialize_as = Vec<u8>)]
    pub(crate) bodies: Bytes,
}

/// The member with the type of an event. It is read if the row has events of several types.
#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow)]
    event_type: Cow<'a, str>,
}

impl StoredRow {
    /// Returns the events of the row, in order.
    ///
    /// # Errors
    /// The row is damaged. Its events must not be skipped.
    pub(crate) fn events(&self) -> QueryResult<Vec<Event>> {
        let bodies: Vec<&[u8]> = self.bodies.split(|byte| *byte == LINE_FEED).collect();
        if i32::try_from(bodies.len()) != Ok(self.size) {
            let text =
                format!("the row `{}` has {} events, not {}", self.id, bodies.len(), self.size);
            return Err(Sql::DeserializationError(text.into()));
        }
        let first = self.last_sequence - i64::from(self.size) + 1;
        let mut events = Vec::with_capacity(bodies.len());
        for ((place, sequence), body) in (0..).zip(first..).zip(bodies) {
            events.push(Event {
                id: if self.size == 1 { self.id.clone() } else { at_place(&self.id, place) },
                sequence,
                event_type: self.event_type(body)?,
                body: self.bodies.slice_ref(body),
            });
        }
        Ok(events)
    }

    fn event_type(&self, body: &[u8]) -> QueryResult<String> {
        if !self.event_types.contains(' ') {
            return Ok(self.event_types.clone());
        }
        let typed: Typed<'_> = serde_json::from_slice(body)
            .map_err(|error| Sql::DeserializationError(Box::new(error)))?;
        Ok(typed.event_type.into_owned())
    }
}

/// Returns the id of a shared row with this event. A row with only this event can have the event's
/// id instead.
pub(crate) fn row_id(event_id: &EventRef) -> EventRef {
    at_place(event_id, 0)
}

fn at_place(id: &EventRef, place: usize) -> EventRef {
    let common = id.len().checked_sub(PLACE_DIGITS).and_then(|length| id.get(..length));
    format!("{}{place:04x}", common.unwrap_or_default()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &str = "svc.decision.allowed";
    const DENIED: &str = "svc.decision.denied";

    fn stored(row: NewRow) -> StoredRow {
        StoredRow {
            event_types: row.event_types(),
            id: row.id,
            last_sequence: row.last_sequence,
            size: i32::try_from(row.size).unwrap(),
            bodies: row.bodies.into(),
        }
    }

    #[test]
    fn events_are_read_as_they_were_written() {
        for types in [&[ALLOWED][..], &[ALLOWED; MOST_IN_ROW], &[DENIED, ALLOWED, DENIED]] {
            let (mut row, mut written) = (NewRow::new(), Vec::new());
            for (sequence, event_type) in (41..).zip(types) {
                assert!(!row.is_full());
                let id = row.next_id();
                let body = format!(r#"{{"event_id":"{id}","event_type":"{event_type}"}}"#);
                row.push(sequence, event_type, body.as_bytes());
                written.push((id, sequence, (*event_type).to_owned(), body.into_bytes()));
            }
            assert_eq!(row.is_full(), types.len() == MOST_IN_ROW);
            let read = stored(row).events().unwrap().into_iter();
            let read: Vec<_> = read
                .map(|event| (event.id, event.sequence, event.event_type, event.body.to_vec()))
                .collect();
            assert_eq!(read, written);
        }
    }

    #[test]
    fn each_event_has_an_id_of_its_own_that_names_its_row() {
        let mut row = NewRow::new();
        let mut ids = BTreeSet::new();
        while !row.is_full() {
            let id = row.next_id();
            assert_eq!((id.len(), row_id(&id)), (42, row.id.clone()));
            ids.insert(id);
            row.push(1, ALLOWED, b"{}");
        }
        assert_eq!(ids.len(), MOST_IN_ROW);
        assert_eq!(ids.first(), Some(&row.id));
        for odd in ["", "é", "é000", "xé00"] {
            assert!(row_id(&odd.into()).ends_with("0000"), "{odd}");
        }
    }

    /// The id of the only event of a row needs no place.
    #[test]
    fn a_row_of_one_event_has_the_id_of_that_event() {
        let row = StoredRow {
            id: "svc:event:0198c0ffee017c4f8a2d5b6e7f809a1b".into(),
            last_sequence: 7,
            size: 1,
            event_types: ALLOWED.to_owned(),
            bodies: Bytes::from_static(b"{}"),
        };
        let events = row.events().unwrap();
        let [event] = &events[..] else { panic!("not one event") };
        assert_eq!((&*event.id, event.sequence, &*event.event_type), (&*row.id, 7, ALLOWED));
    }

    #[test]
    fn a_damaged_row_is_an_error() {
        let row = |size, event_types: &str, bodies: &'static [u8]| StoredRow {
            id: "svc:event:0198c0ffee017c4f8a2d5b6e7f800000".into(),
            last_sequence: 9,
            size,
            event_types: event_types.to_owned(),
            bodies: Bytes::from_static(bodies),
        };
        assert!(row(2, ALLOWED, b"{}\n{}").events().is_ok());
        assert!(row(3, ALLOWED, b"{}\n{}").events().is_err());
        assert!(row(1, ALLOWED, b"{}\n{}").events().is_err());
        assert!(row(2, "svc.decision.allowed svc.decision.denied", b"{}\n{}").events().is_err());
    }
}
