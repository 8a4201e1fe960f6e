//! The number of decisions of each tenant per hour and day. A worker maintains the counts.

mod query;
mod roll_up;

use std::time::Instant;

use authority_model::{
    proto::runtime::{
        ListUsageRequest, ListUsageResponse, RankUsageRequest, RankUsageResponse, UsageCount,
    },
    schema::usage_cursor,
    service::{Reply, UsageService},
    wire::Time,
};
use diesel::prelude::*;
use tonic::{Request, Response};

use authority_api::{
    error::ApiError,
    identity::{Caller, admitted},
    named_tenant, page,
    page_token::PageTokens,
};
use authority_keys::Keys;
use authority_store::{self as store, Db, RunQueryDsl, Store};

use super::decision_cursor::time_of;
use query::{PagePosition, UsageFilter, fault};
pub use roll_up::UsageRollUp;

const PAGE: i32 = 100;

/// Serves `UsageService`.
pub(super) struct UsageHandlers {
    pub(super) store: Store,
    /// Authenticates page tokens.
    pub(super) keys: Keys,
}

impl UsageHandlers {
    async fn list(
        &self,
        caller: &Caller,
        by: ListUsageRequest,
    ) -> Result<ListUsageResponse, ApiError> {
        let tokens = PageTokens::of(&self.keys, caller, &by);
        let after = tokens.read(&by.page_token)?;
        // An authentic token contains a valid position, because it was written below.
        let after = after.and_then(|place| PagePosition::read(&place));
        let size = usize::try_from(by.limit.unwrap_or(PAGE)).unwrap_or_default();
        named_tenant::known(&self.store, caller, by.tenant_id.as_deref()).await?;
        let (scope, begun) = (caller.scope(), Instant::now());
        let filter = UsageFilter::new(by, scope.tenant.clone())?;
        let most = i64::try_from(size).unwrap_or(i64::MAX - 1) + 1;
        let found = self.store.read_tx(&scope, async move |db| {
            let usage = filter.list(db, after, most).await?;
            Ok::<_, store::Error>((usage, counted_until(db).await?))
        });
        let (mut usage, counted_until): (Vec<UsageCount>, _) =
            found.await.map_err(|error| fault(error, begun))?;
        let goes_on = page::cut(&mut usage, size);
        let last = usage.last().filter(|_| goes_on);
        let next_page_token =
            last.map(|last| tokens.write(PagePosition::of(last).write().as_bytes()));
        Ok(ListUsageResponse { usage, next_page_token, counted_until })
    }

    async fn rank(
        &self,
        caller: &Caller,
        by: RankUsageRequest,
    ) -> Result<RankUsageResponse, ApiError> {
        named_tenant::known(&self.store, caller, by.tenant_id.as_deref()).await?;
        let (scope, begun) = (caller.scope(), Instant::now());
        let (field, most) = (by.rank_by, by.limit.unwrap_or(PAGE).into());
        let filter = ListUsageRequest {
            tenant_id: by.tenant_id,
            since: by.since,
            until: by.until,
            period: by.period,
            subject: by.subject,
            action: by.action,
            decision: by.decision,
            reason_code: by.reason_code,
            ..ListUsageRequest::default()
        };
        let filter = UsageFilter::new(filter, scope.tenant.clone())?;
        let found = self.store.read_tx(&scope, async move |db| {
            let ranks = filter.rank(db, field.as_deref(), most).await?;
            Ok::<_, store::Error>((ranks, counted_until(db).await?))
        });
        let (ranks, counted_until) = found.await.map_err(|error| fault(error, begun))?;
        Ok(RankUsageResponse { ranks, counted_until })
    }
}

/// Reads the time up to which decisions are counted.
async fn counted_until(db: &mut Db) -> QueryResult<Option<Time>> {
    let counted: String = usage_cursor::table.select(usage_cursor::counted_until).first(db).await?;
    Ok(time_of(&counted).map(Into::into))
}

#[tonic::async_trait]
impl UsageService for UsageHandlers {
    async fn list_usage(&self, call: Request<ListUsageRequest>) -> Reply<ListUsageResponse> {
        let (caller, by) = admitted(call)?;
        Ok(Response::new(self.list(&caller, by).await?))
    }

    async fn rank_usage(&self, call: Request<RankUsageRequest>) -> Reply<RankUsageResponse> {
        let (caller, by) = admitted(call)?;
        Ok(Response::new(self.rank(&caller, by).await?))
    }
}
