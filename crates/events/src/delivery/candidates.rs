//! Finds the endpoints with due deliveries that no node has claimed.

use authority_ids::{EndpointRef, TenantRef};
use authority_model::schema::webhook_endpoints;
use authority_store::{Db, RunQueryDsl, prepared};
use authority_webhook::destination::{EndpointUrl, UrlRules};
use diesel::{
    QueryDsl, QueryResult, QueryableByName,
    dsl::exists,
    sql_types::{BigInt, Bool, SmallInt, Text},
};

use super::{
    places::DeliveryPlace,
    turns::{Candidate, LANES},
};

/// The endpoints with open deliveries, by a loose index scan. For each lane, the due deliveries are
/// counted up to 65, which is one more than the limit of a lane. Endpoints are left out while their
/// breaker is open or their receiver asked to wait. `now()` can use the index of due times;
/// `clock_timestamp()` cannot.
const CANDIDATES: &str = "WITH RECURSIVE open (endpoint_id) AS ( \
         (SELECT endpoint_id FROM webhook_deliveries WHERE state = 'open' ORDER BY endpoint_id LIMIT 1) \
         UNION ALL \
         SELECT (SELECT endpoint_id FROM webhook_deliveries \
                 WHERE state = 'open' AND endpoint_id > open.endpoint_id \
                 ORDER BY endpoint_id LIMIT 1) \
         FROM open WHERE endpoint_id IS NOT NULL) \
     SELECT e.id AS endpoint_id, e.tenant_id, e.url, lanes.lane, due.count \
     FROM open \
     JOIN webhook_endpoints e ON e.id = open.endpoint_id AND e.state = 'active' \
     JOIN tenants t ON t.id = e.tenant_id AND t.state = 'active' \
     JOIN webhook_cursors c ON c.endpoint_id = e.id \
     CROSS JOIN (VALUES (0::smallint), (1::smallint), (2::smallint)) AS lanes (lane) \
     CROSS JOIN LATERAL (SELECT count(*) FROM ( \
         SELECT FROM webhook_deliveries d \
         WHERE d.endpoint_id = e.id AND d.lane = lanes.lane AND d.state = 'open' \
           AND d.due_at <= now() \
           AND (d.leased_until IS NULL OR d.leased_until <= clock_timestamp()) \
         LIMIT 65) AS found) AS due \
     WHERE due.count > 0 \
       AND (c.waits_until IS NULL OR c.waits_until <= clock_timestamp()) \
       AND (c.breaker = 'closed' OR c.breaker_until <= clock_timestamp()) \
       AND ($1 OR e.signing_suites <@ '{standard-webhooks/v1}')";

/// Whether there are endpoints, in any state. Most installations have none. Each query of the
/// deliveries opens all their partitions, which takes a hundred times longer than this one.
pub(super) async fn has_endpoints(db: &mut Db) -> QueryResult<bool> {
    diesel::select(exists(webhook_endpoints::table.select(webhook_endpoints::id)))
        .get_result(db)
        .await
}

/// Returns the endpoints with due deliveries.
///
/// If `has_signer` is false, it returns only endpoints with signatures that need no signing key of
/// the service.
pub(super) async fn candidates(
    db: &mut Db,
    rules: &UrlRules,
    has_signer: bool,
) -> QueryResult<Vec<Candidate>> {
    if !has_endpoints(db).await? {
        return Ok(Vec::new());
    }
    let due: Vec<Due> = prepared(CANDIDATES).bind::<Bool, _>(has_signer).load(db).await?;
    let mut candidates: Vec<Candidate> = Vec::new();
    for row in due {
        let lane = usize::try_from(row.lane).unwrap_or_default().min(LANES - 1);
        let count = usize::try_from(row.count).unwrap_or_default();
        match candidates.last_mut() {
            Some(last) if last.place.endpoint_id == row.endpoint_id => last.due[lane] += count,
            _ => {
                let mut due = [0; LANES];
                due[lane] = count;
                let host = EndpointUrl::parse(&row.url, rules);
                let host = host.map(|url| url.host().to_owned()).unwrap_or_default();
                let Due { endpoint_id, tenant_id, .. } = row;
                candidates
                    .push(Candidate { place: DeliveryPlace { endpoint_id, tenant_id, host }, due });
            }
        }
    }
    Ok(candidates)
}

#[derive(QueryableByName)]
struct Due {
    #[diesel(sql_type = Text, deserialize_as = String)]
    endpoint_id: EndpointRef,
    #[diesel(sql_type = Text, deserialize_as = String)]
    tenant_id: TenantRef,
    #[diesel(sql_type = Text)]
    url: String,
    #[diesel(sql_type = SmallInt)]
    lane: i16,
    #[diesel(sql_type = BigInt)]
    count: i64,
}
