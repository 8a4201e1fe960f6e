//! Reads pages of a tenant's event log.

use std::borrow::Cow;

use authority_ids::{PrincipalRef, TenantId};
use authority_model::schema::event_heads;
use authority_webhook::event_types::{EventType, Selection};
use diesel::{QueryResult, prelude::*};
use serde::Deserialize;

use authority_api::error::{ApiError, ErrorCode};
use authority_store::{Db, RunQueryDsl};

use crate::log::{self, Event, LogPart};

/// The most events that are scanned for one page. This bounds the cost of a filter that matches
/// nothing.
const THROUGH: i64 = 10_000;
/// The most events that are read at once for a filter.
const CHUNK: i64 = 500;

/// The first and the last sequence of a tenant's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The sequence of the oldest event that is kept.
    pub(crate) oldest: i64,
    /// The sequence of the newest event; 0 if the log is empty.
    pub(crate) head: i64,
}

/// The part of a log that a caller requests and may see.
#[derive(Clone)]
pub(crate) struct VisiblePart {
    pub(crate) tenant_id: TenantId,
    /// The names of the event types; all types if `None`.
    event_types: Option<Vec<&'static str>>,
    /// The principals that a bound API key may see events about; `None` for all.
    principals: Option<Vec<PrincipalRef>>,
}

/// The principal of an event. Bound API keys see only events about their principals.
#[derive(Deserialize)]
struct About<'a> {
    #[serde(borrow, default)]
    principal_entity_id: Option<Cow<'a, str>>,
}

/// A page of events, in order.
pub(crate) struct Page {
    /// The sequence and bytes of each event.
    pub(crate) events: Vec<(i64, Vec<u8>)>,
    /// The sequence after which the next page begins.
    pub(crate) next_after: i64,
    pub(crate) bounds: Bounds,
}

impl VisiblePart {
    /// Returns the part of the tenant's log that the patterns select.
    ///
    /// # Errors
    /// A pattern is malformed or matches no event type.
    pub(crate) fn of(
        tenant_id: TenantId,
        patterns: &[String],
        bound_to: Option<&[PrincipalRef]>,
    ) -> Result<Self, ApiError> {
        let selection = match patterns {
            [] => None,
            some => Some(
                Selection::parse(some)
                    .map_err(|why| ApiError::field("event_type", why.to_string()))?,
            ),
        };
        Ok(Self {
            tenant_id,
            event_types: selection.map(|types| types.families().map(EventType::name).collect()),
            principals: bound_to.map(<[PrincipalRef]>::to_vec),
        })
    }

    /// Reads up to `limit` events after a sequence.
    ///
    /// Reads from the oldest event if `after` is `None`.
    ///
    /// # Errors
    /// Retention has deleted events after `after`, or `after` is beyond the end of the log.
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
        let (events, reached) = self.select(db, (after, through), limit).await.map_err(failed)?;
        // Retention may have deleted some of these events since the bounds were read.
        let left = self::bounds(db, &self.tenant_id).await.map_err(failed)?;
        if after < left.oldest - 1 && after < through {
            return Err(out_of_bounds(ErrorCode::SequenceExpired, left));
        }
        Ok(Page { events, next_after: reached, bounds })
    }

    /// Reads up to `limit` events of this part, with sequences above `after` and not above
    /// `through`.
    ///
    /// Also returns the sequence up to which the log was read.
    async fn select(
        &self,
        db: &mut Db,
        (after, through): (i64, i64),
        limit: i64,
    ) -> QueryResult<(Vec<(i64, Vec<u8>)>, i64)> {
        let types = self.event_types.as_deref();
        let is_filtered = types.is_some() || self.principals.is_some();
        let most = if is_filtered { limit.max(CHUNK) } else { limit };
        let limit = usize::try_from(limit).unwrap_or_default();
        let (mut events, mut reached) = (Vec::new(), after);
        while events.len() < limit && reached < through {
            let range = (reached, through);
            let found = log::read(db, self.tenant_id.as_str(), range, types, most).await?;
            let LogPart { events: read, reached: until } = found;
            let shown = read.into_iter().filter(|event| self.shows(event));
            events.extend(shown.map(|event| (event.sequence, event.body.to_vec())));
            reached = until;
        }
        if events.len() >= limit {
            events.truncate(limit);
            reached = events.last().map_or(after, |(sequence, _)| *sequence);
        }
        Ok((events, reached))
    }

    /// Whether the event is about a principal that the caller may see events about.
    fn shows(&self, event: &Event) -> bool {
        let Some(own) = &self.principals else { return true };
        let about = serde_json::from_slice::<About<'_>>(&event.body).ok();
        let principal_id = about.and_then(|about| about.principal_entity_id);
        principal_id.is_some_and(|id| own.iter().any(|own| *own == *id))
    }
}

/// Returns the first and the last sequence of the tenant's log.
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
    authority_store::Error::from(error).into()
}
