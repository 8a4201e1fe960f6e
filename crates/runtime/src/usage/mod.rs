//! The number of decisions of each tenant per day. A worker maintains the counts.

mod roll_up;

use authority_model::{
    proto::runtime::{ListUsageRequest, ListUsageResponse, UsageDay},
    schema::{usage_cursor, usage_days},
    service::{Reply, UsageService},
    wire::Time,
};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use diesel::prelude::*;
use tonic::{Request, Response};

use authority_api::{
    error::ApiError,
    identity::{Caller, admitted},
    named_tenant, page,
    page_token::PageTokens,
};
use authority_keys::Keys;
use authority_store::{self as store, RunQueryDsl, Store};

pub(super) use roll_up::SETTLED;
pub use roll_up::UsageRollUp;

const PAGE: i32 = 100;

/// Tenant, day, and the three counts.
type UsageRow = (String, NaiveDate, i64, i64, i64);

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
        let after = after.and_then(|place| read(&place));
        let size = usize::try_from(by.limit.unwrap_or(PAGE)).unwrap_or_default();
        named_tenant::known(&self.store, caller, by.tenant_id.as_deref()).await?;
        let scope = caller.scope();
        let within = scope.tenant.clone();
        let found = self.store.read_tx(&scope, async move |db| {
            let mut query = usage_days::table.into_boxed();
            if let Some(own) = &within {
                query = query.filter(usage_days::tenant_id.eq(own.as_str()));
            }
            if let Some(tenant_id) = &by.tenant_id {
                query = query.filter(usage_days::tenant_id.eq(tenant_id));
            }
            if let Some(since) = by.since.and_then(Time::moment) {
                query = query.filter(usage_days::day.ge(since.date_naive()));
            }
            if let Some(until) = by.until.and_then(Time::moment) {
                query = query.filter(usage_days::day.le(last_day(until)));
            }
            if let Some((day, tenant_id)) = &after {
                let same_day = usage_days::day.eq(*day).and(usage_days::tenant_id.gt(tenant_id));
                query = query.filter(usage_days::day.lt(*day).or(same_day));
            }
            let rows: Vec<UsageRow> = query
                .order((usage_days::day.desc(), usage_days::tenant_id.asc()))
                .limit(i64::try_from(size).unwrap_or(i64::MAX - 1) + 1)
                .load(db)
                .await?;
            let counted: String =
                usage_cursor::table.select(usage_cursor::counted_until).first(db).await?;
            Ok::<_, store::Error>((rows, counted))
        });
        let (rows, counted) = found.await?;
        let mut usage: Vec<UsageDay> = rows.into_iter().map(day).collect();
        let goes_on = page::cut(&mut usage, size);
        let last = usage.last().filter(|_| goes_on);
        let next_page_token = last.map(|UsageDay { day, tenant_id, .. }| {
            tokens.write(format!("{day} {tenant_id}").as_bytes())
        });
        Ok(ListUsageResponse {
            usage,
            next_page_token,
            counted_until: roll_up::time_of(&counted).map(Into::into),
        })
    }
}

fn day((tenant_id, day, allow, require_approval, deny): UsageRow) -> UsageDay {
    UsageDay { tenant_id, day: day.to_string(), allow, require_approval, deny }
}

/// Returns the last day that begins before a time.
fn last_day(until: DateTime<Utc>) -> NaiveDate {
    (until - TimeDelta::microseconds(1)).date_naive()
}

fn read(place: &[u8]) -> Option<(NaiveDate, String)> {
    let (day, tenant_id) = std::str::from_utf8(place).ok()?.split_once(' ')?;
    Some((day.parse().ok()?, tenant_id.to_owned()))
}

#[tonic::async_trait]
impl UsageService for UsageHandlers {
    async fn list_usage(&self, call: Request<ListUsageRequest>) -> Reply<ListUsageResponse> {
        let (caller, by) = admitted(call)?;
        Ok(Response::new(self.list(&caller, by).await?))
    }
}
