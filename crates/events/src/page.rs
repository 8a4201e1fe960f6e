//! Pages of a tenant's log of events.

use authority_ids::TenantId;
use authority_model::schema::{event_heads, events};
use authority_webhook::event_types::{EventType, Selection};
use diesel::{QueryResult, prelude::*};

use authority_api::error::{ApiError, ErrorCode};
use authority_core::store::{Db, RunQueryDsl};

/// How much of a log one page looks through: a filter that finds nothing costs no more.
const THROUGH: i64 = 10_000;

/// Where a tenant's log begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The sequence of the oldest event that is kept.
    pub(crate) oldest: i64,
    /// The sequence of the newest event; 0 before the first.
    pub(crate) head: i64,
}

/// The part of a log that a caller wants and may see.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) tenant_id: TenantId,
    /// The types by name; all if `None`.
    event_types: Option<Vec<&'static str>>,
    /// Only events about these principals, for a bound API key.
    principals: Option<Vec<String>>,
}

/// Events in order.
pub(crate) struct Page {
    /// Their sequences and bytes.
    pub(crate) events: Vec<(i64, Vec<u8>)>,
    /// Where the next page goes on.
    pub(crate) next_after: i64,
    pub(crate) bounds: Bounds,
}

impl Part {
    /// # Errors
    /// A pattern is malformed, or matches no type.
    pub(crate) fn of(
        tenant_id: TenantId,
        patterns: &[String],
        bound_to: Option<&[String]>,
    ) -> Result<Self, ApiError> {
        let selection = match patterns {
            [] => None,
            some => Some(Selection::parse(some).map_err(|why| {
                // The message begins with the name that endpoints have for it.
                let why = why.to_string();
                ApiError::field(
                    "event_type",
                    why.trim_start_matches("event_types").trim_start_matches(": "),
                )
            })?),
        };
        Ok(Self {
            tenant_id,
            event_types: selection.map(|types| types.families().map(EventType::name).collect()),
            principals: bound_to.map(<[String]>::to_vec),
        })
    }

    /// Up to `limit` events after a sequence; from the oldest on if there is none.
    ///
    /// # Errors
    /// Events after it are no longer kept, or there is no such event yet.
    pub(crate) async fn read(
        &self,
        db: &mut Db,
        after: Option<i64>,
        limit: i64,
    ) -> Result<Page, ApiError> {
        let bounds = bounds(db, &self.tenant_id).await.map_err(failed)?;
        let after = after.unwrap_or(bounds.oldest - 1);
        if after < bounds.oldest - 1 {
            return Err(out_of_bounds(ErrorCode::SequenceExpired, bounds));
        }
        if after > bounds.head {
            return Err(out_of_bounds(ErrorCode::SequenceAhead, bounds));
        }
        let through = bounds.head.min(after.saturating_add(THROUGH));
        let mut query = events::table
            .filter(events::tenant_id.eq(self.tenant_id.as_str()))
            .filter(events::sequence.gt(after).and(events::sequence.le(through)))
            .into_boxed();
        if let Some(types) = &self.event_types {
            query = query.filter(events::event_type.eq_any(types));
        }
        if let Some(own) = &self.principals {
            query = query.filter(events::principal_entity_id.eq_any(own));
        }
        let page: Vec<(i64, Vec<u8>)> = query
            .order(events::sequence)
            .limit(limit)
            .select((events::sequence, events::body))
            .load(db)
            .await
            .map_err(failed)?;
        // Retention may have taken some of them since.
        let left = self::bounds(db, &self.tenant_id).await.map_err(failed)?;
        if after < left.oldest - 1 && after < through {
            return Err(out_of_bounds(ErrorCode::SequenceExpired, left));
        }
        let is_full = i64::try_from(page.len()).is_ok_and(|found| found == limit);
        let last = page.last().filter(|_| is_full).map(|(sequence, _)| *sequence);
        Ok(Page { next_after: last.unwrap_or(through), events: page, bounds })
    }
}

/// Where the tenant's log begins and ends.
pub(crate) async fn bounds(db: &mut Db, tenant_id: &TenantId) -> QueryResult<Bounds> {
    let found: Option<(i64, i64)> = event_heads::table
        .find(tenant_id.as_str())
        .select((event_heads::oldest, event_heads::sequence))
        .first(db)
        .await
        .optional()?;
    let (oldest, head) = found.unwrap_or((1, 0));
    Ok(Bounds { oldest, head })
}

fn out_of_bounds(code: ErrorCode, Bounds { oldest, head }: Bounds) -> ApiError {
    let message = format!("{}; `oldest` is {oldest} and `head` is {head}", code.sentence());
    ApiError::new(code, message).with("oldest", oldest.to_string()).with("head", head.to_string())
}

fn failed(error: diesel::result::Error) -> ApiError {
    authority_core::store::Error::from(error).into()
}
