//! Lists of approval requests: oldest first, newest first, or by expiry.
//!
//! People need the requests that expire soonest, and the requests that ended most recently. In a
//! list that starts with the oldest request, such requests can be on late pages, which many clients
//! never read.

use authority_model::{
    proto::approval::{Approval, ListApprovalsRequest},
    schema::approvals,
    state::ApprovalState,
    wire::Time,
};

use crate::flow::{page::place_at, prelude::*};
use authority_api::{error::ApiError, identity::Caller, page_token::PageTokens};
use authority_ids::TenantId;
use authority_store::{Db, RunQueryDsl};

/// The order of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Oldest,
    Newest,
    Expiry,
}

impl Order {
    /// # Errors
    /// The order does not exist for requests of the state.
    pub(super) fn of(by: &ListApprovalsRequest) -> Result<Self, ApiError> {
        let expires = by.state.as_deref().is_some_and(is_open);
        match by.order.as_deref() {
            Some("newest") => Ok(Self::Newest),
            Some("expiry") if expires => Ok(Self::Expiry),
            Some("expiry") => Err(ApiError::field(
                "order",
                "`expiry` is for requests that expire: set `state` to pending or approved",
            )),
            _ => Ok(Self::Oldest),
        }
    }

    /// Returns the token to continue after the record.
    pub(super) fn place_of(self, record: &Approval, tokens: &PageTokens) -> Option<String> {
        let at = if self == Self::Expiry { record.expires_at } else { record.created_at };
        Some(place_at(at?, &record.id, tokens))
    }

    /// Returns a page and, if requested, the number of all matches. The page has one record more
    /// than requested if there is a next page.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) async fn read(
        self,
        db: &mut Db,
        caller: &Caller,
        by: &ListApprovalsRequest,
        window: &Window,
    ) -> QueryResult<(Vec<Approval>, Option<i64>)> {
        let matching = || {
            let own = caller.tenant().map(TenantId::as_str);
            let tenants = [by.tenant_id.as_deref(), own].into_iter().flatten();
            tenants.fold(Approval::filtered(by), Approval::in_tenant)
        };
        let total = if by.count { Some(Approval::count(db, matching()).await?) } else { None };
        Ok((self.rows(db, matching(), window).await?, total))
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
            (_, None) => query,
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

/// Whether requests in the state expire.
pub(super) fn is_open(state: &str) -> bool {
    let state = state.parse().ok();
    matches!(state, Some(ApprovalState::Pending | ApprovalState::Approved))
}
