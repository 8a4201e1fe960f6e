//! Lists of approval requests: oldest first, newest first, by expiry, or by amount.
//!
//! People need the requests that expire soonest, and the requests that ended most recently. In a
//! list that starts with the oldest request, such requests can be on late pages, which many clients
//! never read.

use std::collections::HashMap;

use authority_model::{
    proto::approval::{Approval, ListApprovalsRequest},
    schema::approvals,
    state::ApprovalState,
    wire::Time,
};

use super::{by_amount, decidable::Decider};
use crate::flow::{page::place_at, prelude::*};
use authority_api::{error::ApiError, page_token::PageTokens};
use authority_ids::TenantId;
use authority_store::{Db, RunQueryDsl};

/// The order of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Oldest,
    Newest,
    Expiry,
    Amount,
}

/// Rows of a list: a page, and one more row if there is a next page.
pub(super) struct Rows {
    pub(super) rows: Vec<Approval>,
    /// The number of all matches, if it was requested.
    pub(super) total: Option<i64>,
    /// The place of each row in the order by amount; empty in other orders.
    pub(super) places: Vec<by_amount::Place>,
}

impl Order {
    /// # Errors
    /// The order or the filter does not exist for requests of the state.
    pub(super) fn of(by: &ListApprovalsRequest) -> Result<Self, ApiError> {
        let expires = by.state.as_deref().is_some_and(is_open);
        let is_pending = is_pending(by);
        if by.for_me && !is_pending {
            return Err(ApiError::field("for_me", "is for requests with `state` pending"));
        }
        match by.order.as_deref() {
            Some("newest") => Ok(Self::Newest),
            Some("expiry") if expires => Ok(Self::Expiry),
            Some("expiry") => Err(ApiError::field(
                "order",
                "`expiry` is for requests that expire: set `state` to pending or approved",
            )),
            Some("amount") if is_pending => Ok(Self::Amount),
            Some("amount") => {
                Err(ApiError::field("order", "`amount` is for requests with `state` pending"))
            }
            _ => Ok(Self::Oldest),
        }
    }

    /// Returns the token to continue after a page with these records.
    pub(super) fn token(
        self,
        page: &[Approval],
        places: &[by_amount::Place],
        tokens: &PageTokens,
    ) -> Option<String> {
        let last = page.last()?;
        let at = match self {
            Self::Amount => return places.get(page.len() - 1)?.token(tokens),
            Self::Expiry => last.expires_at,
            Self::Oldest | Self::Newest => last.created_at,
        };
        Some(place_at(at?, &last.id, tokens))
    }

    /// Returns the rows of a page.
    ///
    /// # Errors
    /// The page token is not of this list, or the store or the authority cannot be read.
    pub(super) async fn read(
        self,
        db: &mut Db,
        decider: &Decider<'_>,
        by: &ListApprovalsRequest,
        window: &Window,
        tokens: &PageTokens,
    ) -> Result<Rows, Error> {
        let filtered = || {
            let own = decider.caller.tenant().map(TenantId::as_str);
            let tenants = [by.tenant_id.as_deref(), own].into_iter().flatten();
            tenants.fold(Approval::filtered(by), Approval::in_tenant)
        };
        let decidable =
            if by.for_me { Some(decider.decidable(db, filtered()).await?) } else { None };
        let matching = || match &decidable {
            Some(ids) => filtered().filter(approvals::id.eq_any(ids)),
            None => filtered(),
        };
        let total = if by.count { Some(Approval::count(db, matching()).await?) } else { None };
        if self == Self::Amount {
            let after = by_amount::Place::read(&by.page_token, tokens)?;
            let (rows, places) = largest_first(db, matching(), after, window).await?;
            return Ok(Rows { rows, total, places });
        }
        let rows = self.rows(db, matching(), window).await?;
        Ok(Rows { rows, total, places: Vec::new() })
    }

    async fn rows(
        self,
        db: &mut Db,
        query: approvals::BoxedQuery<'_, Pg>,
        window: &Window,
    ) -> QueryResult<Vec<Approval>> {
        let after: Option<(Time, &str)> = window.after.as_ref().map(|(at, id)| (*at, id.as_str()));
        let query = match (self, after) {
            (Self::Oldest, _) => return Approval::load_page(db, query, window).await,
            // `largest_first` reads the order by amount.
            (_, None) | (Self::Amount, Some(_)) => query,
            (Self::Newest, Some((at, id))) => query.filter(
                approvals::created_at
                    .lt(at)
                    .or(approvals::created_at.eq(at).and(approvals::id.lt(id))),
            ),
            (Self::Expiry, Some((at, id))) => query.filter(
                approvals::expires_at
                    .gt(at)
                    .or(approvals::expires_at.eq(at).and(approvals::id.gt(id))),
            ),
        };
        let query = match self {
            Self::Expiry => query.order((approvals::expires_at.asc(), approvals::id.asc())),
            _ => query.order((approvals::created_at.desc(), approvals::id.desc())),
        };
        query.limit(window.query_limit()).select(Approval::as_select()).load(db).await
    }
}

/// Returns the rows of a page in the order by amount, with their places.
async fn largest_first(
    db: &mut Db,
    query: approvals::BoxedQuery<'_, Pg>,
    after: Option<by_amount::Place>,
    window: &Window,
) -> QueryResult<(Vec<Approval>, Vec<by_amount::Place>)> {
    let all = query.select((approvals::id, approvals::decision_id)).load(db).await?;
    let mut places = by_amount::places(db, all).await?;
    places.retain(|place| after.as_ref().is_none_or(|after| place > after));
    places.truncate(window.size + 1);
    let ids: Vec<&str> = places.iter().map(|place| place.id.as_str()).collect();
    let rows: Vec<Approval> = approvals::table
        .filter(approvals::id.eq_any(ids))
        .select(Approval::as_select())
        .load(db)
        .await?;
    let mut rows: HashMap<String, Approval> =
        rows.into_iter().map(|row| (row.id.clone(), row)).collect();
    let in_order = places.iter().filter_map(|place| rows.remove(&place.id)).collect();
    Ok((in_order, places))
}

/// Whether the list has only pending requests.
pub(super) fn is_pending(by: &ListApprovalsRequest) -> bool {
    by.state.as_deref() == Some(ApprovalState::Pending.to_string().as_str())
}

/// Whether requests in the state expire.
pub(super) fn is_open(state: &str) -> bool {
    let state = state.parse().ok();
    matches!(state, Some(ApprovalState::Pending | ApprovalState::Approved))
}
