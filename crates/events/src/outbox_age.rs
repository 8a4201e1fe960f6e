//! Measures how long events wait for their numbers, as a metric.

use std::time::Duration;

use authority_process::worker::Worker;
use authority_store::{self as store, RunQueryDsl, Scope, Store};
use diesel::{QueryableByName, sql_types::Double};

const EVERY: Duration = Duration::from_secs(15);

/// Selects the age in seconds of the first event in the outbox; 0 if there is none. The age of an
/// expiry event counts from the expiry, which is a few seconds before the event is written.
const AGE: &str = "SELECT coalesce(greatest(0, extract(epoch FROM clock_timestamp() - ( \
     SELECT occurred_at FROM event_outbox ORDER BY number LIMIT 1)))::float8, 0) AS seconds";

#[derive(QueryableByName)]
struct Age {
    #[diesel(sql_type = Double)]
    seconds: f64,
}

/// Returns the worker that measures the age.
pub(crate) fn worker(store: Store) -> Worker {
    Worker::periodic("event_outbox_age", EVERY, move || {
        let store = store.clone();
        async move {
            let read = store.read_tx(&Scope::service(), async |db| {
                let age: Age = diesel::sql_query(AGE).get_result(db).await?;
                Ok::<_, store::Error>(age)
            });
            metrics::gauge!("authority_event_outbox_age_seconds").set(read.await?.seconds);
            Ok::<_, store::Error>(())
        }
    })
}
