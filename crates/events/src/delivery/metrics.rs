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

/// A name, a label's value, and a number.
const MEASURES: &str = "SELECT 'due' AS name, lanes.name AS label, ( \
         SELECT count(*) FROM webhook_deliveries d \
         WHERE d.state = 'open' AND d.lane = lanes.lane AND d.due_at <= clock_timestamp() \
     )::float8 AS value \
     FROM (VALUES (0, 'first'), (1, 'retry'), (2, 'replay')) AS lanes (lane, name) \
     UNION ALL SELECT 'oldest', '', coalesce(extract(epoch FROM clock_timestamp() - min(d.due_at)), 0) \
     FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id AND e.state = 'active' \
     WHERE d.state = 'open' AND d.due_at <= clock_timestamp() \
     UNION ALL SELECT 'dead', '', count(*) FROM webhook_deliveries WHERE state = 'dead' \
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
