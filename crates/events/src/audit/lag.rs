//! How far audit streams are behind, as a metric.

use std::time::Duration;

use authority_process::worker::Worker;
use authority_store::{self as store, RunQueryDsl, Scope, Store};
use diesel::{QueryableByName, sql_types::BigInt};

const EVERY: Duration = Duration::from_secs(10);

/// The largest lag of the enabled streams. A stream with a failing sink doesn't count.
const LAG: &str = "SELECT coalesce(max(h.sequence - c.sequence) FILTER (WHERE c.failures = 0), 0) AS lag, \
            count(*) FILTER (WHERE c.failures > 0 OR c.checkpoint_failures > 0) AS failing \
     FROM audit_cursors c \
     JOIN audit_streams s ON s.id = c.stream_id AND s.state = 'active' \
     JOIN tenants t ON t.id = c.tenant_id AND t.state = 'active' \
     JOIN event_heads h ON h.tenant_id = c.tenant_id";

#[derive(QueryableByName)]
struct Lag {
    #[diesel(sql_type = BigInt)]
    lag: i64,
    #[diesel(sql_type = BigInt)]
    failing: i64,
}

/// Returns the worker that measures the lag.
pub(crate) fn worker(store: Store) -> Worker {
    Worker::periodic("audit_stream_lag", EVERY, move || {
        let store = store.clone();
        async move {
            let read = store.read_tx(&Scope::service(), async |db| {
                let lag: Lag = diesel::sql_query(LAG).get_result(db).await?;
                Ok::<_, store::Error>(lag)
            });
            let Lag { lag, failing } = read.await?;
            metrics::gauge!("authority_audit_stream_lag_events").set(number(lag));
            metrics::gauge!("authority_audit_streams_failing").set(number(failing));
            Ok::<_, store::Error>(())
        }
    })
}

#[expect(clippy::cast_precision_loss, reason = "a gauge; 2^53 events are never reached")]
fn number(count: i64) -> f64 {
    count as f64
}
