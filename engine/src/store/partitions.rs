//! Partitions of time-ordered tables, made ahead of need.

use std::time::Duration;

use super::{Db, Error, RunQueryDsl, Scope, Store};

/// Months are made three ahead: a day without this is no harm.
const EVERY: Duration = Duration::from_secs(24 * 3600);

diesel::define_sql_function! { fn extend_partitions() -> diesel::sql_types::Integer; }

impl Store {
    /// Makes the partitions of the months to come, now and every day. Never returns.
    pub async fn keep_partitions(&self) {
        loop {
            match self.extend_partitions().await {
                Ok(0) => {}
                Ok(made) => tracing::info!(made, "made partitions ahead"),
                Err(error) => tracing::error!(%error, "cannot make partitions ahead"),
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    async fn extend_partitions(&self) -> Result<i32, Error> {
        let extend = async move |db: &mut Db| {
            Ok::<_, Error>(diesel::select(extend_partitions()).get_result(db).await?)
        };
        self.act(&Scope::service(), extend).await
    }
}
