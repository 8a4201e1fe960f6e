//! What operators see of deliveries; no tenant is named.

use std::{sync::Arc, time::Duration};

use authority_core::{
    store::{self, RunQueryDsl, Scope},
    worker::Worker,
};
use diesel::{
    QueryableByName,
    sql_types::{Double, Text},
};

use super::Shared;

const EVERY: Duration = Duration::from_secs(15);

/// A name, a label's value, and a number. Endpoints with open deliveries are found by a loose index scan. Of
/// one endpoint at most 1,000 due deliveries of a lane are counted, and 100,000 dead ones of all.
const MEASURES: &str = "WITH RECURSIVE open (endpoint_id) AS ( \
         (SELECT endpoint_id FROM webhook_deliveries WHERE state = 'open' ORDER BY endpoint_id LIMIT 1) \
         UNION ALL \
         SELECT (SELECT endpoint_id FROM webhook_deliveries \
                 WHERE state = 'open' AND endpoint_id > open.endpoint_id \
                 ORDER BY endpoint_id LIMIT 1) \
         FROM open WHERE endpoint_id IS NOT NULL), \
     lanes (lane, name) AS (VALUES (0::smallint, 'first'), (1::smallint, 'retry'), (2::smallint, 'replay')), \
     due AS MATERIALIZED ( \
         SELECT lanes.name, e.state, first.count, first.oldest \
         FROM open JOIN webhook_endpoints e ON e.id = open.endpoint_id CROSS JOIN lanes \
         CROSS JOIN LATERAL (SELECT count(*) AS count, min(due_at) AS oldest FROM ( \
             SELECT d.due_at FROM webhook_deliveries d \
             WHERE d.endpoint_id = e.id AND d.lane = lanes.lane AND d.state = 'open' \
               AND d.due_at <= now() ORDER BY d.due_at LIMIT 1000) AS found) AS first) \
     SELECT 'due' AS name, lanes.name AS label, coalesce(sum(due.count), 0)::float8 AS value \
     FROM lanes LEFT JOIN due ON due.name = lanes.name GROUP BY lanes.name \
     UNION ALL SELECT 'oldest', '', coalesce(extract(epoch FROM now() - min(oldest)), 0) \
     FROM due WHERE state = 'active' \
     UNION ALL SELECT 'dead', '', count(*) \
     FROM (SELECT FROM webhook_deliveries WHERE state = 'dead' LIMIT 100000) AS dead \
     UNION ALL SELECT 'endpoints', states.state, ( \
         SELECT count(*) FROM webhook_endpoints e WHERE e.state = states.state) \
     FROM (VALUES ('active'), ('paused'), ('disabled')) AS states (state) \
     UNION ALL SELECT 'lag', '', coalesce(max(h.sequence - c.sequence), 0) \
     FROM webhook_cursors c JOIN event_heads h ON h.tenant_id = c.tenant_id \
     JOIN webhook_endpoints e ON e.id = c.endpoint_id AND e.state = 'active'";

pub(super) fn worker(shared: Arc<Shared>) -> Worker {
    Worker::periodic("webhook_metrics", EVERY, move || measure(Arc::clone(&shared)))
}

async fn measure(shared: Arc<Shared>) -> Result<(), store::Error> {
    let measures = shared.store.read_tx(&Scope::service(), async move |db| {
        let measures: Vec<Measure> = diesel::sql_query(MEASURES).load(db).await?;
        Ok::<_, store::Error>(measures)
    });
    for Measure { name, label, value } in measures.await? {
        match name.as_str() {
            "due" => {
                metrics::gauge!("authority_webhook_due_deliveries", "lane" => label).set(value);
            }
            "oldest" => metrics::gauge!("authority_webhook_oldest_due_seconds").set(value),
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
    #[diesel(sql_type = Double)]
    value: f64,
}
