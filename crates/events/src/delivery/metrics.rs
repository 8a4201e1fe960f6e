//! Metrics of deliveries for operators. They name no tenants.

use std::{sync::Arc, time::Duration};

use authority_process::worker::Worker;
use authority_store::{self as store, RunQueryDsl, Scope};
use diesel::{
    QueryableByName,
    sql_types::{Double, Text},
};

use tokio::time::Instant;

use super::{candidates::has_endpoints, shared::Shared};

const EVERY: Duration = Duration::from_secs(15);

/// Returns rows with a metric's name, a label, a tenant and a value. Endpoints with open deliveries
/// are found by a loose index scan. At most 1,000 due deliveries of an endpoint's lane are counted,
/// and at most 100,000 dead deliveries in total.
///
/// Deliveries aren't late while an open breaker, a `Retry-After`, an inactive endpoint or a
/// suspended tenant holds them back. Afterwards, lateness counts from the end of that time.
const MEASURES: &str = "WITH RECURSIVE open (endpoint_id) AS ( \
         (SELECT endpoint_id FROM webhook_deliveries WHERE state = 'open' ORDER BY endpoint_id LIMIT 1) \
         UNION ALL \
         SELECT (SELECT endpoint_id FROM webhook_deliveries \
                 WHERE state = 'open' AND endpoint_id > open.endpoint_id \
                 ORDER BY endpoint_id LIMIT 1) \
         FROM open WHERE endpoint_id IS NOT NULL), \
     lanes (lane, name) AS (VALUES (0::smallint, 'first'), (1::smallint, 'retry'), (2::smallint, 'replay')), \
     holds AS MATERIALIZED ( \
         SELECT e.id, e.tenant_id, c.sequence, greatest(c.waits_until, c.breaker_until) AS held_until, \
                CASE WHEN t.state <> 'active' THEN 'tenant' WHEN e.state <> 'active' THEN 'endpoint' \
                     WHEN c.waits_until > clock_timestamp() THEN 'retry_after' \
                     WHEN c.breaker <> 'closed' AND coalesce(c.breaker_until > clock_timestamp(), true) \
                     THEN 'breaker' END AS held_by \
         FROM webhook_endpoints e JOIN tenants t ON t.id = e.tenant_id \
         JOIN webhook_cursors c ON c.endpoint_id = e.id), \
     due AS MATERIALIZED ( \
         SELECT h.id, h.tenant_id, h.held_by, h.held_until, lanes.name, first.count, first.oldest \
         FROM open JOIN holds h ON h.id = open.endpoint_id CROSS JOIN lanes \
         CROSS JOIN LATERAL (SELECT count(*) AS count, min(due_at) AS oldest FROM ( \
             SELECT d.due_at FROM webhook_deliveries d \
             WHERE d.endpoint_id = h.id AND d.lane = lanes.lane AND d.state = 'open' \
               AND d.due_at <= now() ORDER BY d.due_at LIMIT 1000) AS found) AS first) \
     SELECT 'due' AS name, lanes.name AS label, '' AS tenant, coalesce(sum(due.count), 0)::float8 AS value \
     FROM lanes LEFT JOIN due ON due.name = lanes.name AND due.held_by IS NULL GROUP BY lanes.name \
     UNION ALL SELECT 'held', reasons.name, '', coalesce(sum(due.count), 0) \
     FROM (VALUES ('breaker'), ('retry_after'), ('endpoint'), ('tenant')) AS reasons (name) \
     LEFT JOIN due ON due.held_by = reasons.name GROUP BY reasons.name \
     UNION ALL (SELECT 'oldest', id, tenant_id, \
                       extract(epoch FROM now() - greatest(min(oldest), min(held_until))) \
                FROM due WHERE held_by IS NULL AND count > 0 GROUP BY id, tenant_id ORDER BY 4 DESC LIMIT 1000) \
     UNION ALL SELECT 'dead', '', '', count(*) \
     FROM (SELECT FROM webhook_deliveries WHERE state = 'dead' LIMIT 100000) AS dead \
     UNION ALL SELECT 'endpoints', states.state, '', ( \
         SELECT count(*) FROM webhook_endpoints e WHERE e.state = states.state) \
     FROM (VALUES ('active'), ('paused'), ('disabled')) AS states (state) \
     UNION ALL SELECT 'lag', '', '', coalesce(max(h.sequence - holds.sequence), 0) \
     FROM holds JOIN event_heads h ON h.tenant_id = holds.tenant_id WHERE holds.held_by IS NULL";

/// The names and labels of the metrics without endpoints. Their values are 0.
const NONE: [(&str, &str); 12] = [
    ("due", "first"),
    ("due", "retry"),
    ("due", "replay"),
    ("held", "breaker"),
    ("held", "retry_after"),
    ("held", "endpoint"),
    ("held", "tenant"),
    ("dead", ""),
    ("endpoints", "active"),
    ("endpoints", "paused"),
    ("endpoints", "disabled"),
    ("lag", ""),
];

pub(super) fn worker(shared: Arc<Shared>) -> Worker {
    Worker::periodic("webhook_metrics", EVERY, move || measure(Arc::clone(&shared)))
}

async fn measure(shared: Arc<Shared>) -> Result<(), store::Error> {
    let measures = shared.store.read_tx(&Scope::service(), async move |db| {
        if has_endpoints(db).await? {
            Ok::<_, store::Error>(diesel::sql_query(MEASURES).load(db).await?)
        } else {
            Ok(NONE.map(Measure::zero).into())
        }
    });
    let measures: Vec<Measure> = measures.await?;
    // Endpoints that are slowed down by their own limits don't count as late.
    let is_limited = |id: &String| shared.limited.has(id, Instant::now());
    let is_late = |one: &&Measure| {
        one.name == "oldest" && !is_limited(&one.label) && !is_limited(&one.tenant)
    };
    let oldest = measures.iter().filter(is_late).map(|one| one.value).fold(0.0, f64::max);
    metrics::gauge!("authority_webhook_oldest_due_seconds").set(oldest);
    for Measure { name, label, value, .. } in measures {
        match name.as_str() {
            "due" => {
                metrics::gauge!("authority_webhook_due_deliveries", "lane" => label).set(value);
            }
            "held" => {
                metrics::gauge!("authority_webhook_held_deliveries", "by" => label).set(value);
            }
            "oldest" => {}
            "dead" => metrics::gauge!("authority_webhook_dead_deliveries").set(value),
            "endpoints" => {
                metrics::gauge!("authority_webhook_endpoints", "state" => label).set(value);
            }
            _ => metrics::gauge!("authority_webhook_cursor_lag_events").set(value),
        }
    }
    Ok(())
}

#[derive(QueryableByName)]
struct Measure {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    label: String,
    #[diesel(sql_type = Text)]
    tenant: String,
    #[diesel(sql_type = Double)]
    value: f64,
}

impl Measure {
    fn zero((name, label): (&str, &str)) -> Self {
        let (name, label) = (name.to_owned(), label.to_owned());
        Self { name, label, tenant: String::new(), value: 0.0 }
    }
}
