//! The public counter of enquiries.

use authority_api::error::ApiError;
use authority_model::{proto::programme::CountLeadsResponse, schema::leads};
use authority_store::{self as store, RunQueryDsl, Scope, Store};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use tokio::sync::Mutex;

/// How long a count is cached. Caching keeps single enquiries from being visible in the count.
const SHOWN: TimeDelta = TimeDelta::minutes(10);
const RECENT: TimeDelta = TimeDelta::days(30);

/// The last count. One caller refreshes it while the others wait.
#[derive(Default)]
pub(crate) struct LeadCounter(Mutex<Option<(DateTime<Utc>, CountLeadsResponse)>>);

impl LeadCounter {
    pub(crate) async fn count(
        &self,
        store: &Store,
        now: DateTime<Utc>,
    ) -> Result<CountLeadsResponse, ApiError> {
        let mut last = self.0.lock().await;
        if let Some((at, count)) = &*last
            && now - *at < SHOWN
        {
            return Ok(*count);
        }
        let counted = store.read_tx(&Scope::service(), async move |db| {
            let live = || leads::table.filter(leads::deleted_at.is_null()).into_boxed();
            let total: i64 = live().count().get_result(db).await?;
            let recent = live().filter(leads::created_at.gt(now - RECENT));
            let recent: i64 = recent.count().get_result(db).await?;
            Ok::<_, store::Error>([total, recent])
        });
        let [total, recent] = counted.await?.map(|count| i32::try_from(count).unwrap_or(i32::MAX));
        let count = CountLeadsResponse { total, last_30_days: recent };
        *last = Some((now, count));
        Ok(count)
    }
}
