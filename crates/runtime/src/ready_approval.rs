//! Automatic citing: if its tenant permits that, a request that would be held uses a ready
//! approval.
//!
//! It is decided again as if it had cited that approval, and recorded so. The approval must be for
//! the same request, of the same subject, requested with the same credential. The recorder claims
//! it like any cited approval.

use std::sync::Arc;

use authority_model::{schema::approvals, state::ApprovalState};
use chrono::{DateTime, Utc};
use diesel::{
    dsl::sql,
    prelude::*,
    sql_types::{Bool, Text},
};

use super::{decide::Decider, fault::fault};
use authority_api::{
    error::{ApiError, ErrorCode},
    identity::{Caller, CallerKind},
};
use authority_core::{
    graph::TenantHandle,
    spending,
    store::{self, RunQueryDsl, Scope},
};
use authority_decision::{Draft, Facts, Gathered, Request, Verdict};

/// The most ready approvals that are tried for one request.
const MOST_TRIED: i64 = 4;

/// A request that cites a ready approval, and its decision.
pub(super) struct Citing {
    pub(super) request: Request,
    pub(super) seen: Facts,
    pub(super) verdict: Verdict,
}

impl Decider {
    /// `None` if there is no ready approval, or it would not meet what the request is held for:
    /// then the request is held unchanged.
    pub(super) async fn citing_ready(
        &self,
        caller: &Caller,
        handle: Option<&TenantHandle>,
        request: &Request,
        gathered: &Arc<Gathered>,
        at: DateTime<Utc>,
    ) -> Result<Option<Citing>, ApiError> {
        for id in self.ready(caller, request, at).await? {
            let draft = Draft { approval_id: Some(id), ..request.clone().into_draft() };
            let request = Request::new(draft).map_err(|_| ApiError::plain(ErrorCode::Internal))?;
            let mut seen = self.facts.load_counters_and_approval(&request, gathered, at).await?;
            // Determined here, since a request without a cited approval did not need it.
            let counting = self.facts.counting(Some(caller), handle, &request, gathered);
            let verdict = self.facts.decide_on(&request, &mut seen, counting.as_ref(), at);
            if verdict.claims.approval_id.is_some() {
                return Ok(Some(Citing { request, seen: seen.facts, verdict }));
            }
        }
        Ok(None)
    }

    /// The approved and unused approvals for the request, oldest first. There are several if something
    /// began after the first that takes another review.
    async fn ready(
        &self,
        caller: &Caller,
        request: &Request,
        at: DateTime<Utc>,
    ) -> Result<Vec<String>, ApiError> {
        let digest = spending::question(request).map_err(fault)?;
        let kind = match &caller.kind {
            CallerKind::Key { .. } => "api_key",
            CallerKind::Owner { .. } | CallerKind::Member { .. } => "person",
            CallerKind::Anonymous => return Ok(Vec::new()),
        };
        let (tenant_id, subject) = (request.tenant().clone(), request.subject.clone());
        let (kind, asker) = (kind.to_owned(), caller.identity());
        let scope = Scope { tenant: Some(tenant_id.clone()), ..Scope::service() };
        let read = self.facts.store.read_tx(&scope, async move |db| {
            let asked = sql::<Bool>(
                "EXISTS (SELECT FROM unnest(requested_by) AS asker WHERE asker ->> 'kind' = ",
            )
            .bind::<Text, _>(kind)
            .sql(" AND asker ->> 'id' = ")
            .bind::<Text, _>(asker)
            .sql(")");
            let ids: Vec<String> = approvals::table
                .filter(approvals::tenant_id.eq(tenant_id.as_str()))
                .filter(approvals::request_digest.eq(digest.to_vec()))
                .filter(approvals::subject.eq(subject))
                .filter(
                    approvals::state.eq(ApprovalState::Approved).and(approvals::expires_at.gt(at)),
                )
                .filter(asked)
                .order((approvals::created_at, approvals::id))
                .limit(MOST_TRIED)
                .select(approvals::id)
                .load(db)
                .await?;
            Ok::<_, store::Error>(ids)
        });
        Ok(read.await?)
    }
}
