//! Partitions of time-ordered tables, made ahead of need.

use std::time::Duration;

use super::{Db, Error, RunQueryDsl, Scope, Store};

/// Months are made three ahead; sooner where a clock jumps, or a database was left alone for long.
const EVERY: Duration = Duration::from_secs(60);

diesel::define_sql_function! { fn extend_partitions() -> diesel::sql_types::Integer; }

impl Store {
    /// Makes the partitions of the months to come, every minute. Never returns.
    pub async fn keep_partitions(&self) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.make_partitions().await;
        }
    }

    /// Makes the partitions of the months to come. Where that fails it is logged, and recording fails
    /// once the last one is full.
    pub async fn make_partitions(&self) {
        match self.extend_partitions().await {
            Ok(0) => {}
            Ok(made) => tracing::info!(made, "made partitions ahead"),
            Err(error) => tracing::error!(%error, "cannot make partitions ahead"),
        }
    }

    async fn extend_partitions(&self) -> Result<i32, Error> {
        let extend = async move |db: &mut Db| {
            Ok::<_, Error>(diesel::select(extend_partitions()).get_result(db).await?)
        };
        self.write_tx(&Scope::service(), extend).await
    }
}
