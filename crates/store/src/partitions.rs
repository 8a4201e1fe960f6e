//! Creates partitions of time-ordered tables before they are needed.

use std::time::Duration;

use super::{Db, Error, RunQueryDsl, Scope, Store};
use authority_process::worker::Worker;

/// Partitions are created three months ahead. The check is frequent because a clock may jump, and a
/// database may have been unused for long.
const EVERY: Duration = Duration::from_secs(60);

diesel::define_sql_function! { fn extend_partitions() -> diesel::sql_types::Integer; }

impl Store {
    /// Returns a worker that creates the partitions of the coming months, every minute.
    ///
    /// If it fails for months, recording fails, and readiness reports that.
    pub fn partitions(&self) -> Worker {
        let store = self.clone();
        Worker::periodic("partitions", EVERY, move || {
            let store = store.clone();
            async move { store.make_partitions().await }
        })
    }

    /// Creates the partitions of the coming months.
    pub async fn make_partitions(&self) -> Result<(), Error> {
        let made = self.extend_partitions().await?;
        if made > 0 {
            tracing::info!(partitions = made, "created the partitions of the coming months");
        }
        Ok(())
    }

    async fn extend_partitions(&self) -> Result<i32, Error> {
        let extend = async move |db: &mut Db| {
            Ok::<_, Error>(diesel::select(extend_partitions()).get_result(db).await?)
        };
        self.write_tx(&Scope::service(), extend).await
    }
}
