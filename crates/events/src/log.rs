//! Reads tenants' logs of events.

use std::collections::{BTreeSet, HashSet};

use authority_ids::EventRef;
use authority_store::{Db, RunQueryDsl, prepared};
use bytes::Bytes;
use diesel::{
    QueryResult,
    sql_types::{Array, BigInt, Nullable, Text},
};

use crate::log_row::{MOST_IN_ROW, StoredRow, row_id};

pub(crate) use crate::log_row::Event;

/// Selects rows with events after `$2` and up to `$3`, until they have about `$5` events. `$6` is
/// the most events of a row. Because of `$6`, the scan of the index ends soon after `$3`.
const ROWS: &str = "SELECT id, last_sequence, size, event_types, bodies FROM ( \
         SELECT *, sum(size) OVER (ORDER BY last_sequence) - size AS before FROM ( \
             SELECT * FROM events \
             WHERE tenant_id = $1 AND last_sequence > $2::bigint \
               AND last_sequence - size < $3::bigint AND last_sequence < $3::bigint + $6::bigint \
               AND ($4::text[] IS NULL OR string_to_array(event_types, ' ') && $4::text[]) \
             ORDER BY last_sequence LIMIT $5::bigint) AS next) AS counted \
     WHERE before < $5::bigint ORDER BY last_sequence";

const ROWS_BY_ID: &str = "SELECT e.id, e.last_sequence, e.size, e.event_types, e.bodies \
     FROM unnest($1, $2) AS named (tenant_id, id) \
     JOIN events e ON e.id = named.id AND e.tenant_id = named.tenant_id";

/// A part of a log.
pub(crate) struct LogPart {
    /// In order.
    pub(crate) events: Vec<Event>,
    /// The sequence up to which the log was read. All events of the requested types up to it were
    /// found.
    pub(crate) reached: i64,
}

/// Reads up to `most` events with sequences above `after` and not above `until`.
///
/// If `types` is `None`, events of all types are read. The result may have fewer than `most` events
/// although there are more: see `reached`.
pub(crate) async fn read(
    db: &mut Db,
    tenant_id: &str,
    (after, until): (i64, i64),
    types: Option<&[&str]>,
    most: i64,
) -> QueryResult<LogPart> {
    let rows: Vec<StoredRow> = prepared(ROWS)
        .bind::<Text, _>(tenant_id)
        .bind::<BigInt, _>(after)
        .bind::<BigInt, _>(until)
        .bind::<Nullable<Array<Text>>, _>(types)
        .bind::<BigInt, _>(most)
        .bind::<BigInt, _>(i64::try_from(MOST_IN_ROW).unwrap_or(i64::MAX))
        .load(db)
        .await?;
    let size: i64 = rows.iter().map(|row| i64::from(row.size)).sum();
    let last = rows.last().filter(|_| size >= most);
    let mut reached = last.map_or(until, |last| last.last_sequence.min(until));
    let mut events = Vec::new();
    for row in &rows {
        events.extend(row.events()?);
    }
    events.retain(|event| {
        (after + 1..=until).contains(&event.sequence)
            && types.is_none_or(|types| types.contains(&event.event_type.as_str()))
    });
    let most = usize::try_from(most).unwrap_or_default();
    if let Some(next) = events.get(most) {
        reached = next.sequence - 1;
        events.truncate(most);
    }
    Ok(LogPart { events, reached })
}

/// Reads events by their tenants and ids. Deleted events are left out.
pub(crate) async fn by_id(
    db: &mut Db,
    wanted: &HashSet<(&str, &EventRef)>,
) -> QueryResult<Vec<Event>> {
    let mut named: BTreeSet<(&str, EventRef)> = BTreeSet::new();
    for (tenant_id, id) in wanted {
        named.extend([(*tenant_id, (*id).clone()), (*tenant_id, row_id(id))]);
    }
    let (tenants, ids): (Vec<&str>, Vec<&str>) =
        named.iter().map(|(tenant_id, id)| (*tenant_id, id.as_str())).unzip();
    let rows: Vec<StoredRow> = prepared(ROWS_BY_ID)
        .bind::<Array<Text>, _>(tenants)
        .bind::<Array<Text>, _>(ids)
        .load(db)
        .await?;
    let wanted: HashSet<&EventRef> = wanted.iter().map(|(_, id)| *id).collect();
    let mut events = Vec::new();
    for row in &rows {
        let of_row = row.events()?.into_iter().filter(|event| wanted.contains(&event.id));
        // The bytes are copied. A slice would keep the whole row in memory.
        events.extend(
            of_row.map(|event| Event { body: Bytes::copy_from_slice(&event.body), ..event }),
        );
    }
    Ok(events)
}
