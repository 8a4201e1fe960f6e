//! Metrics of the unsealed decisions of tenants with `auto_seal`, in total for all tenants.

use std::time::Duration;

use authority_process::worker::Worker;
use authority_store::{self as store, RunQueryDsl, Scope, Store};
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Double},
};

const EVERY: Duration = Duration::from_secs(15);

/// Returns the number of unsealed decisions after the logs' last leaves, and the age of the oldest.
/// At most 10,000 are counted for each tenant. Decisions before the last leaf are not counted.
const LAG: &str = "SELECT count(*) AS count, \
         coalesce(extract(epoch FROM clock_timestamp() - min(open.evaluated_at)), 0)::float8 AS oldest \
     FROM tenants t \
     LEFT JOIN LATERAL (SELECT h.last_decision_id AS id FROM log_heads h WHERE h.tenant_id = t.id \
         ORDER BY h.epoch DESC LIMIT 1) AS last ON true \
     CROSS JOIN LATERAL (SELECT d.evaluated_at FROM decisions d \
         WHERE d.tenant_id = t.id AND d.id > coalesce(last.id, '') \
         AND NOT EXISTS (SELECT FROM evidence_packs p \
             WHERE p.decision_id = d.id AND p.decision_id > coalesce(last.id, '')) \
         ORDER BY d.id LIMIT 10000) AS open \
     WHERE t.auto_seal AND t.deleted_at IS NULL";

#[derive(QueryableByName)]
struct Lag {
    #[diesel(sql_type = BigInt)]
    count: i64,
    #[diesel(sql_type = Double)]
    oldest: f64,
}

/// Returns the worker that measures the lag.
pub(super) fn worker(store: Store) -> Worker {
    Worker::periodic("seal_lag", EVERY, move || {
        let store = store.clone();
        async move {
            let read = store.read_tx(&Scope::service(), async |db| {
                let lag: Lag = diesel::sql_query(LAG).get_result(db).await?;
                Ok::<_, store::Error>(lag)
            });
            let lag = read.await?;
            metrics::gauge!("authority_seal_lag_decisions").set(number(lag.count));
            metrics::gauge!("authority_seal_lag_seconds").set(lag.oldest);
            Ok::<_, store::Error>(())
        }
    })
}

#[expect(clippy::cast_precision_loss, reason = "a count of rows is far below 2^52")]
fn number(count: i64) -> f64 {
    count as f64
}
