//! Metrics of the approval requests that wait for people. They have no tenant label.

use std::time::Duration;

use authority_process::worker::Worker;
use authority_store::{self as store, RunQueryDsl, Scope, Store};
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Double},
};

const EVERY: Duration = Duration::from_secs(15);

/// Counts up to 100,000 requests, with the index on requests that expire.
const WAITING: &str = "SELECT count(*) AS count, \
         coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8 AS oldest \
     FROM (SELECT created_at FROM approvals WHERE state = 'pending' LIMIT 100000) AS pending";

#[derive(QueryableByName)]
struct Waiting {
    #[diesel(sql_type = BigInt)]
    count: i64,
    #[diesel(sql_type = Double)]
    oldest: f64,
}

/// Returns the worker that measures waiting requests.
pub fn measure_waiting(store: Store) -> Worker {
    Worker::periodic("approvals_waiting", EVERY, move || {
        let store = store.clone();
        async move {
            let read = store.read_tx(&Scope::service(), async |db| {
                let waiting: Waiting = diesel::sql_query(WAITING).get_result(db).await?;
                Ok::<_, store::Error>(waiting)
            });
            let waiting = read.await?;
            metrics::gauge!("authority_approvals_pending").set(number(waiting.count));
            metrics::gauge!("authority_approvals_oldest_seconds").set(waiting.oldest);
            Ok::<_, store::Error>(())
        }
    })
}

#[expect(clippy::cast_precision_loss, reason = "counted up to 100,000")]
fn number(count: i64) -> f64 {
    count as f64
}
