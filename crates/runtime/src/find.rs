//! The list of decisions, newest first. Filters are the subject, action, outcome and other fields.

use std::time::Instant;

use authority_model::{
    proto::runtime::{DecisionSummary, ListDecisionsRequest, ListDecisionsResponse},
    schema::decisions,
    wire::Time,
};
use diesel::{pg::Pg, prelude::*};

use super::{
    answer,
    decision_filter::{DecisionFilter, limit},
    settings::ReceiptUrls,
};
use authority_api::{
    error::ApiError,
    identity::{Caller, Exports},
    named_tenant, page,
    page_token::PageTokens,
};
use authority_archive::Archives;
use authority_decision::Decision;
use authority_ids::DecisionId;
use authority_keys::Keys;
use authority_process::{clock::Clock, compute::ComputePool};
use authority_store::{self as store, RunQueryDsl, Store};

const PAGE: i32 = 100;

#[derive(Queryable, Selectable)]
#[diesel(table_name = decisions, check_for_backend(Pg))]
pub(super) struct DecisionSummaryRow {
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
    /// The pool that repeats decisions for a trace.
    pub(super) pool: ComputePool,
    /// Authenticates page tokens.
    pub(super) keys: Keys,
    pub(super) receipts: ReceiptUrls,
    /// The running exports.
    pub(super) exports: Exports,
    /// Decisions that have been moved out of the tables.
    pub(super) archives: Archives,
}

impl DecisionQueries {
    /// Returns a page of decisions. Their IDs start with their time. A span of time is therefore a
    /// range of IDs, and only its partitions are read.
    pub(super) async fn list(
        &self,
        caller: &Caller,
        by: ListDecisionsRequest,
    ) -> Result<ListDecisionsResponse, ApiError> {
        let scope = caller.scope();
        let size = usize::try_from(by.limit.unwrap_or(PAGE)).unwrap_or_default();
        let tokens = PageTokens::of(&self.keys, caller, &by);
        let before = tokens.read(&by.page_token);
        named_tenant::known(&self.store, caller, by.tenant_id.as_deref()).await?;
        let filter = DecisionFilter::new(by, scope.tenant.clone())?;
        let before = before?.map(|id| String::from_utf8(id).unwrap_or_default());
        let most = i64::try_from(size).unwrap_or(i64::MAX - 1) + 1;
        let (queries, begun) = (filter.newest(before.as_deref(), most), Instant::now());
        let found = self.store.read_tx(&scope, async move |db| {
            limit(db).await?;
            let mut found: Vec<DecisionSummaryRow> = Vec::new();
            for query in queries {
                found.extend(
                    query
                        .select(DecisionSummaryRow::as_select())
                        .load::<DecisionSummaryRow>(db)
                        .await?,
                );
            }
            Ok::<_, store::Error>(found)
        });
        let mut found = found.await.map_err(|error| filter.fault(error, begun))?;
        found.sort_unstable_by(|one, other| other.id.cmp(&one.id));
        let mut decisions: Vec<_> = found.into_iter().map(|found| self.summary(found)).collect();
        let goes_on = page::cut(&mut decisions, size);
        let last = decisions.last().map(|last| last.decision_id.as_bytes());
        let next_page_token = last.filter(|_| goes_on).map(|id| tokens.write(id));
        Ok(ListDecisionsResponse { decisions, next_page_token })
    }

    pub(super) fn summary(&self, found: DecisionSummaryRow) -> DecisionSummary {
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

/// Parses a decision's ID. For a text that is not an ID, the decision is not found.
pub(super) fn decision_id(text: &str) -> Result<DecisionId, ApiError> {
    DecisionId::parse(text).map_err(|_| ApiError::not_found("decision", text))
}

/// Selects the decision if the caller may read it. It must belong to the caller's tenant and, for a
/// bound API key, to the key's principals. The owner can read the decisions of every tenant.
pub(super) fn readable<'q>(
    id: &'q DecisionId,
    caller: &'q Caller,
) -> decisions::BoxedQuery<'q, Pg> {
    let mut query = decisions::table.filter(decisions::id.eq(id.as_str())).into_boxed();
    if let Some(tenant) = caller.tenant() {
        query = query.filter(decisions::tenant_id.eq(tenant.as_str()));
    }
    if let Some(own) = caller.bound_to() {
        query = query.filter(decisions::subject.eq_any(own));
    }
    query
}
