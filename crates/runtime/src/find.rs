//! The list of decisions, filtered by subject, action, outcome and others, newest first.

use authority_ids::{DecisionId, TenantId};
use authority_model::{
    proto::runtime::{DecisionSummary, ListDecisionsRequest, ListDecisionsResponse},
    schema::decisions,
    wire::Time,
};
use diesel::{pg::Pg, prelude::*};

use super::{ReceiptUrls, answer};
use authority_api::{
    error::ApiError,
    identity::{Caller, Exports},
    page_token,
};
use authority_core::{
    clock::Clock,
    compute::ComputePool,
    keys::Keys,
    store::{self, RunQueryDsl, Store},
};
use authority_decision::Decision;

const PAGE: i32 = 100;
/// The timeout of the query: a list must not delay other work.
pub(super) const SHORT: &str = "SET LOCAL statement_timeout = '3s'";

/// The list's name in page tokens.
const LIST: &str = "decisions";

#[derive(Queryable, Selectable)]
#[diesel(table_name = decisions, check_for_backend(Pg))]
pub(super) struct Found {
    pub(super) id: String,
    tenant_id: String,
    subject: String,
    action: String,
    decision: String,
    reason_code: String,
    evaluated_at: Time,
    approval_id: Option<String>,
}

/// Reads decisions. Cheap to clone.
#[derive(Clone)]
pub(super) struct DecisionQueries {
    pub(super) store: Store,
    pub(super) clock: Clock,
    /// Decides again, for a trace.
    pub(super) pool: ComputePool,
    /// Authenticate page tokens.
    pub(super) keys: Keys,
    pub(super) receipts: ReceiptUrls,
    /// The exports under way.
    pub(super) exports: Exports,
}

impl DecisionQueries {
    /// A page of decisions. Their ids start with their time, so a span of time is a range of ids,
    /// and only the partitions in it are read.
    pub(super) async fn list(
        &self,
        caller: &Caller,
        by: ListDecisionsRequest,
    ) -> Result<ListDecisionsResponse, ApiError> {
        bounded(caller, &by)?;
        let keys = &self.keys;
        let before = page_token::read(keys, LIST, &by.page_token)?;
        let size = usize::try_from(by.limit.unwrap_or(PAGE)).unwrap_or_default();
        let scope = caller.scope();
        let within = scope.tenant.clone();
        let found = self.store.read_tx(&scope, async move |db| {
            diesel::sql_query(SHORT).execute(db).await?;
            let mut query = matching(&by, within.as_ref());
            if let Some(before) = before {
                query =
                    query.filter(decisions::id.lt(String::from_utf8(before).unwrap_or_default()));
            }
            let page = i64::try_from(size).unwrap_or(i64::MAX - 1) + 1;
            let query = query.order(decisions::id.desc()).limit(page).select(Found::as_select());
            Ok::<Vec<Found>, store::Error>(query.load(db).await?)
        });
        let mut found = found.await?;
        let more = found.len() > size;
        found.truncate(size);
        let last = found.last().map(|last| last.id.as_bytes());
        let next_page_token = last.filter(|_| more).map(|id| page_token::write(keys, LIST, id));
        let decisions = found.into_iter().map(|found| self.summary(found)).collect();
        Ok(ListDecisionsResponse { decisions, next_page_token })
    }

    pub(super) fn summary(&self, found: Found) -> DecisionSummary {
        DecisionSummary {
            verify_url: self.receipts.url(&found.id),
            decision_id: found.id,
            tenant_id: found.tenant_id,
            subject: found.subject,
            action: found.action,
            decision: Decision::from_word(&found.decision).map_or(0, answer::word),
            reason_code: found.reason_code,
            evaluated_at: Some(found.evaluated_at),
            approval_id: found.approval_id,
        }
    }
}

/// The decision, if it is of the caller's tenant and, for a bound API key, of its principals; the
/// owner reads every tenant's.
pub(super) fn readable<'q>(id: &'q str, caller: &'q Caller) -> decisions::BoxedQuery<'q, Pg> {
    let mut query = decisions::table.filter(decisions::id.eq(id)).into_boxed();
    if let Some(tenant) = caller.tenant() {
        query = query.filter(decisions::tenant_id.eq(tenant.as_str()));
    }
    if let Some(own) = caller.bound_to() {
        query = query.filter(decisions::subject.eq_any(own));
    }
    query
}

/// Checks that a filter is limited to a tenant or a span of time.
pub(super) fn bounded(caller: &Caller, by: &ListDecisionsRequest) -> Result<(), ApiError> {
    let narrows = [&by.subject, &by.action, &by.decision, &by.reason_code];
    let narrowed = narrows.iter().any(|filter| filter.is_some());
    let within = caller.tenant().is_some() || by.tenant_id.is_some() || by.since.is_some();
    if narrowed && !within {
        // Otherwise the query might read every decision.
        return Err(ApiError::field("tenant_id", "is required with this filter, or `since`"));
    }
    Ok(())
}

pub(super) fn matching<'q>(
    by: &ListDecisionsRequest,
    within: Option<&TenantId>,
) -> decisions::BoxedQuery<'q, Pg> {
    let mut query = decisions::table.into_boxed();
    for tenant in [by.tenant_id.as_deref(), within.map(TenantId::as_str)].into_iter().flatten() {
        query = query.filter(decisions::tenant_id.eq(tenant.to_owned()));
    }
    if let Some(subject) = by.subject.clone() {
        query = query.filter(decisions::subject.eq(subject));
    }
    if let Some(action) = by.action.clone() {
        query = query.filter(decisions::action.eq(action));
    }
    if let Some(decision) = by.decision.as_deref().and_then(Decision::from_word) {
        query = query.filter(decisions::decision.eq_any(found_by(decision)));
    }
    if let Some(reason) = by.reason_code.clone() {
        query = query.filter(decisions::reason_code.eq(reason));
    }
    if let Some(since) = by.since {
        query = query.filter(decisions::id.ge(first_id(since)));
    }
    if let Some(until) = by.until {
        query = query.filter(decisions::id.lt(first_id(until)));
    }
    query
}

/// The stored words of a decision: a permission with constraints is also an `allow`,
/// as the evaluate endpoint returns it.
pub(super) fn found_by(asked: Decision) -> Vec<&'static str> {
    let words = Decision::ALL.iter().filter(|word| asked == **word || asked == word.folded());
    words.map(|word| word.word()).collect()
}

/// The smallest id of a time.
pub(super) fn first_id(at: Time) -> String {
    DecisionId::first(u64::try_from(at.micros()).unwrap_or_default() / 1000)
}
