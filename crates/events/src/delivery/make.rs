//! Creates deliveries.

use authority_ids::{EndpointRef, RecordId, RecordRef, TenantRef};
use authority_store::{Db, RunQueryDsl, new_id, prepared};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Nullable, Text},
};

use crate::log::Event;

/// The most open deliveries of an endpoint. The cursor stops at this number. An unreachable
/// receiver therefore causes no more rows.
pub(super) const MOST_OPEN: i64 = 10_000;

const DELIVERIES: &str = "INSERT INTO webhook_deliveries \
         (id, tenant_id, endpoint_id, event_id, event_type, sequence, replay_id, lane) \
     SELECT n.id, $1, $2, n.event_id, n.event_type, n.sequence, $3, CASE WHEN $3 IS NULL THEN 0 ELSE 2 END \
     FROM unnest($4, $5, $6, $7) AS n (id, event_id, event_type, sequence)";

/// The recipient of deliveries.
#[derive(Clone, Copy)]
pub(super) struct Recipient<'a> {
    pub(super) endpoint_id: &'a EndpointRef,
    pub(super) tenant_id: &'a TenantRef,
}

/// Creates a delivery of each event. Returns the ids of the deliveries.
pub(super) async fn deliveries(
    db: &mut Db,
    to: Recipient<'_>,
    replay_id: Option<&RecordRef>,
    events: &[&Event],
) -> QueryResult<Vec<String>> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let id = |_| String::from(RecordId::new("delivery", new_id()));
    let ids: Vec<String> = events.iter().map(id).collect();
    prepared(DELIVERIES)
        .bind::<Text, _>(to.tenant_id.as_str())
        .bind::<Text, _>(to.endpoint_id.as_str())
        .bind::<Nullable<Text>, _>(replay_id.map(RecordRef::as_str))
        .bind::<Array<Text>, _>(&ids)
        .bind::<Array<Text>, _>(events.iter().map(|event| &*event.id).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(events.iter().map(|event| &*event.event_type).collect::<Vec<_>>())
        .bind::<Array<BigInt>, _>(events.iter().map(|event| event.sequence).collect::<Vec<_>>())
        .execute(db)
        .await?;
    Ok(ids)
}

/// Returns how many more deliveries of an endpoint may be open.
pub(super) async fn room(db: &mut Db, endpoint_id: &EndpointRef) -> QueryResult<i64> {
    let open: Count = prepared(
        "SELECT count(*) AS count FROM (SELECT FROM webhook_deliveries \
             WHERE endpoint_id = $1 AND state = 'open' LIMIT $2) AS found",
    )
    .bind::<Text, _>(endpoint_id.as_str())
    .bind::<BigInt, _>(MOST_OPEN)
    .get_result(db)
    .await?;
    Ok(MOST_OPEN - open.count)
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}
