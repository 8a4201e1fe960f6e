//! The list of decisions, newest first. Filters are the subject, action, outcome and other fields.

use std::{sync::Arc, time::Instant};

use authority_model::{
    proto::runtime::{DecisionSummary, ListDecisionsRequest, ListDecisionsResponse},
    schema::decisions,
};
use diesel::{
    pg::Pg,
    prelude::*,
    sql_types::{Array, Text},
};

use super::{
    decision_filter::{DecisionFilter, limit},
    decision_summary::DecisionSummaryRow,
    fact_query::FactQuery,
    settings::ReceiptUrls,
};
use authority_api::{
    error::ApiError,
    identity::{Caller, Exports},
    named_tenant, page,
    page_token::PageTokens,
};
use authority_archive::Archives;
use authority_graph::Graph;
use authority_ids::{DecisionId, PrincipalRef};
use authority_keys::Keys;
use authority_process::{clock::Clock, compute::ComputePool};
use authority_store::{self as store, Db, RunQueryDsl, Store};

const PAGE: i32 = 100;

/// The policies of approval requests, in the order of the statements that held the action.
const POLICIES: &str = "
    SELECT a.id, array_agg(p.name ORDER BY held.ordinality) AS names
    FROM approvals AS a
    CROSS JOIN LATERAL unnest(a.policies) WITH ORDINALITY AS held (policy, ordinality)
    JOIN policies AS p ON p.id = held.policy ->> 'id' AND p.tenant_id = a.tenant_id
    WHERE a.id = ANY ($1) AND p.name IS NOT NULL GROUP BY a.id";

#[derive(QueryableByName)]
struct PoliciesRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Array<Text>)]
    names: Vec<String>,
}

/// Reads decisions. Cheap to clone.
#[derive(Clone)]
pub(super) struct DecisionQueries {
    pub(super) store: Store,
    /// The tools, which declare the facts that lists show.
    pub(super) graph: Arc<Graph>,
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
        let size = usize::try_from(by.limit.unwrap_or(PAGE)).unwrap_or_default();
        let tokens = PageTokens::of(&self.keys, caller, &by);
        let before = tokens.read(&by.page_token);
        named_tenant::known(&self.store, caller, by.tenant_id.as_deref()).await?;
        let fact = by.fact.clone();
        let filter = DecisionFilter::new(by, caller.tenant().cloned())?;
        let before = before?.map(|id| String::from_utf8(id).unwrap_or_default());
        let most = i64::try_from(size).unwrap_or(i64::MAX - 1) + 1;
        let mut found = match fact {
            Some(fact) => self.list_by_fact(caller, &filter, &fact, before, most).await?,
            None => self.newest(caller, &filter, before, most).await?,
        };
        found.sort_unstable_by(|one, other| other.id.cmp(&one.id));
        let mut decisions = self.summaries(caller, found).await?;
        let goes_on = page::cut(&mut decisions, size);
        let last = decisions.last().map(|last| last.decision_id.as_bytes());
        let next_page_token = last.filter(|_| goes_on).map(|id| tokens.write(id));
        Ok(ListDecisionsResponse { decisions, next_page_token })
    }

    /// Returns decisions as lists show them.
    ///
    /// # Errors
    /// The database is unavailable.
    pub(super) async fn summaries(
        &self,
        caller: &Caller,
        rows: Vec<DecisionSummaryRow>,
    ) -> Result<Vec<DecisionSummary>, ApiError> {
        let held = rows.iter().filter_map(DecisionSummaryRow::waits_for);
        let held: Vec<String> = held.map(str::to_owned).collect();
        let mut policies = self.denied_by(caller, &rows).await;
        if !held.is_empty() {
            let read = async move |db: &mut Db| {
                let found = diesel::sql_query(POLICIES).bind::<Array<Text>, _>(held);
                Ok::<Vec<PoliciesRow>, store::Error>(found.load(db).await?)
            };
            let found = self.store.read_tx(&caller.scope(), read).await?;
            policies.extend(found.into_iter().map(|row| (row.id, row.names)));
        }
        let shown = |row: DecisionSummaryRow| row.shown(&self.receipts, &self.graph, &policies);
        Ok(rows.into_iter().map(shown).collect())
    }

    async fn newest(
        &self,
        caller: &Caller,
        filter: &DecisionFilter,
        before: Option<String>,
        most: i64,
    ) -> Result<Vec<DecisionSummaryRow>, ApiError> {
        let (queries, begun) = (filter.newest(before.as_deref(), most), Instant::now());
        let found = self.store.read_tx(&caller.scope(), async move |db| {
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
        found.await.map_err(|error| filter.fault(error, begun))
    }

    /// Returns a page of the decisions on requests with the value of a declared fact.
    async fn list_by_fact(
        &self,
        caller: &Caller,
        filter: &DecisionFilter,
        text: &str,
        before: Option<String>,
        most: i64,
    ) -> Result<Vec<DecisionSummaryRow>, ApiError> {
        let tenant_id = filter.tenant();
        let tenant_id =
            tenant_id.ok_or_else(|| ApiError::field("tenant_id", "is required with `fact`"))?;
        let query = FactQuery::new(&self.keys, tenant_id, text, self.clock.now());
        let (query, begun) = (query.filtered(filter), Instant::now());
        let found = self.store.read_tx(&caller.scope(), async move |db| {
            Ok::<_, store::Error>(query.newest(db, before, most).await?)
        });
        let found = found.await.map_err(|error| filter.fault(error, begun))?;
        Ok(found.into_iter().map(|found| found.row).collect())
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
        query = query.filter(decisions::subject.eq_any(own.iter().map(PrincipalRef::as_str)));
    }
    query
}
