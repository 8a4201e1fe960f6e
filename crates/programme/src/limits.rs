//! Limits on anonymous calls. All nodes share the limits.

use std::net::IpAddr;

use authority_api::{
    error::ApiError,
    rate_limit::{RateLimit, Remaining},
};
use authority_store::{self as store, RunQueryDsl, Scope};
use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Bytea, Integer, Nullable, Text, Timestamptz},
};

use super::Programme;

/// The limits for one type of call. A window begins with the first call in it.
pub(crate) struct Limits {
    kind: &'static str,
    /// The limit for each address.
    address: RateLimit,
    /// The limit for all addresses together.
    everyone: Option<RateLimit>,
}

const LEADS_PER_ADDRESS: RateLimit =
    RateLimit { name: "leads_per_address", limit: 5, window_seconds: 600 };
const ALL_LEADS: RateLimit = RateLimit { name: "leads", limit: 300, window_seconds: 3600 };
const DIRECTORY_PER_ADDRESS: RateLimit =
    RateLimit { name: "directory_per_address", limit: 60, window_seconds: 60 };

/// The limits that are enforced here.
pub const RATE_LIMITS: [RateLimit; 3] = [LEADS_PER_ADDRESS, ALL_LEADS, DIRECTORY_PER_ADDRESS];

/// Limits for enquiries.
pub(crate) const LEADS: Limits =
    Limits { kind: "lead", address: LEADS_PER_ADDRESS, everyone: Some(ALL_LEADS) };

/// Limits for directory entries and widgets.
pub(crate) const DIRECTORY: Limits =
    Limits { kind: "directory", address: DIRECTORY_PER_ADDRESS, everyone: None };

/// Counts a call, for its address and for all addresses together. A call over the limit of its
/// address does not count towards the limit of all addresses.
const COUNT: &str = "
    WITH own AS (
        INSERT INTO anonymous_calls AS c (kind, address, since, calls) VALUES ($1, $2, $3, 1)
        ON CONFLICT (kind, address) DO UPDATE SET
            since = CASE WHEN c.since <= $4 THEN $3 ELSE c.since END,
            calls = CASE WHEN c.since <= $4 THEN 1 ELSE c.calls + 1 END
        RETURNING since, calls
    ), everyone AS (
        INSERT INTO anonymous_calls AS c (kind, address, since, calls)
        SELECT $1, ''::bytea, $3, 1 FROM own WHERE own.calls <= $5 AND $7
        ON CONFLICT (kind, address) DO UPDATE SET
            since = CASE WHEN c.since <= $6 THEN $3 ELSE c.since END,
            calls = CASE WHEN c.since <= $6 THEN 1 ELSE c.calls + 1 END
        RETURNING since, calls
    )
    SELECT own.since, own.calls, everyone.since AS all_since, everyone.calls AS all_calls
    FROM own LEFT JOIN everyone ON true";

#[derive(QueryableByName)]
struct Counted {
    #[diesel(sql_type = Timestamptz)]
    since: DateTime<Utc>,
    #[diesel(sql_type = Integer)]
    calls: i32,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    all_since: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Integer>)]
    all_calls: Option<i32>,
}

impl Programme {
    /// Counts a call from this address. Returns the code that is stored in place of the address,
    /// and the remaining calls of the address.
    ///
    /// # Errors
    /// A limit is reached.
    pub(crate) async fn count(
        &self,
        limits: &'static Limits,
        client: Option<IpAddr>,
    ) -> Result<([u8; 32], Remaining), ApiError> {
        let inner = &self.0;
        let now = inner.clock.now();
        let _turn = self.turn().await?;
        let code = inner.addresses.of(client).await?;
        let Limits { kind, address, everyone } = limits;
        let all = everyone.unwrap_or(*address);
        let counted = inner.store.write_tx(&Scope::service(), async move |db| {
            let counted: Counted = diesel::sql_query(COUNT)
                .bind::<Text, _>(*kind)
                .bind::<Bytea, _>(code.to_vec())
                .bind::<Timestamptz, _>(now)
                .bind::<Timestamptz, _>(now - address.window())
                .bind::<BigInt, _>(i64::from(address.limit))
                .bind::<Timestamptz, _>(now - all.window())
                .bind::<Bool, _>(everyone.is_some())
                .get_result(db)
                .await?;
            Ok::<_, store::Error>(counted)
        });
        let Counted { since, calls, all_since, all_calls } = counted.await?;
        let left = admit(*address, since, calls, now)?;
        if let (Some(since), Some(calls)) = (all_since, all_calls) {
            admit(all, since, calls, now)?;
        }
        Ok((code, left))
    }
}

fn admit(
    limit: RateLimit,
    since: DateTime<Utc>,
    calls: i32,
    now: DateTime<Utc>,
) -> Result<Remaining, ApiError> {
    let seconds = (since + limit.window() - now).num_seconds().max(1);
    let seconds = u64::try_from(seconds).unwrap_or(1);
    let left = limit.limit.checked_sub(u32::try_from(calls).unwrap_or(u32::MAX));
    if let Some(calls) = left {
        return Ok(Remaining::Calls { limit, calls, seconds });
    }
    let RateLimit { limit: most, window_seconds, .. } = limit;
    let text = format!(
        "too many requests: at most {most} in {window_seconds} seconds; wait for the time in \
         Retry-After"
    );
    Err(limit.refusal(text, seconds))
}
