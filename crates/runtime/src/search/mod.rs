//! Search of a tenant: by id, name, or the value of a declared fact.
//!
//! A group is empty if the caller may not list its records. Facts are compared exactly (`fact_query.rs`).

mod approvals;
mod index;
mod principals;
mod records;

use authority_api::{
    error::ApiError,
    identity::{Caller, admitted, may_call},
    named_tenant,
};
use authority_ids::{DecisionId, TenantId};
use authority_model::{
    proto::runtime::{FoundDecision, SearchRequest, SearchResponse},
    schema::fact_cursor,
    service::{Reply, SearchService},
    wire::Time,
};
use authority_store::{self as store, Db, RunQueryDsl};
use diesel::prelude::*;
use tonic::{Request, Response};

use super::{
    decision_cursor::time_of,
    decision_summary::DecisionSummaryRow,
    fact_query::{FactQuery, FoundByFact},
    find::{DecisionQueries, readable},
    history::EntityQueries,
};
pub use index::FactIndex;

/// The maximum number of results of a group.
const MOST: usize = 20;
/// One more, which shows whether there are more.
const LIMIT: i64 = 21;

const LIST_DECISIONS: &str = "/authority.runtime.v1.DecisionService/ListDecisions";
const LIST_APPROVALS: &str = "/authority.approval.v1.ApprovalService/ListApprovals";
const LIST_PRINCIPALS: &str = "/authority.registry.v1.PrincipalService/ListPrincipals";

/// Serves `SearchService`.
pub(super) struct SearchHandlers {
    pub(super) queries: DecisionQueries,
    pub(super) entities: EntityQueries,
}

/// A search of one caller.
struct Search {
    caller: Caller,
    /// The text without blanks around it.
    text: String,
    /// The tenant to search; `None` for all tenants.
    tenant_id: Option<String>,
}

impl SearchHandlers {
    async fn run(&self, caller: Caller, by: SearchRequest) -> Result<SearchResponse, ApiError> {
        named_tenant::known(&self.queries.store, &caller, by.tenant_id.as_deref()).await?;
        let text = by.q.trim().to_owned();
        if text.is_empty() {
            return Err(ApiError::field("q", "must contain a character that is not a blank"));
        }
        let tenant_id = caller.tenant().map(TenantId::to_string).or(by.tenant_id);
        let search = Search { caller, text, tenant_id };
        let by_fact = self.by_fact(&search).await?;
        let mut answer = SearchResponse::default();
        (answer.approvals, answer.more_approvals) = cut(self.approvals(&search, &by_fact).await?);
        (answer.decisions, answer.more_decisions) = cut(self.decisions(&search, by_fact).await?);
        (answer.principals, answer.more_principals) = cut(self.principals(&search).await?);
        (answer.records, answer.more_records) = cut(self.records(&search).await?);
        answer.indexed_until = self.indexed_until(&search).await?;
        Ok(answer)
    }

    /// Finds the newest decisions with the value. Facts are compared within one tenant.
    async fn by_fact(&self, search: &Search) -> Result<Vec<FoundByFact>, ApiError> {
        let Some(tenant_id) = &search.tenant_id else { return Ok(Vec::new()) };
        let queries = &self.queries;
        let query = FactQuery::new(&queries.keys, tenant_id, &search.text, queries.clock.now());
        let found = queries.store.read_tx(&search.caller.scope(), async move |db| {
            Ok::<_, store::Error>(query.newest(db, None, LIMIT).await?)
        });
        Ok(found.await?)
    }

    async fn decisions(
        &self,
        search: &Search,
        by_fact: Vec<FoundByFact>,
    ) -> Result<Vec<FoundDecision>, ApiError> {
        if !may_call(LIST_DECISIONS, &search.caller) {
            return Ok(Vec::new());
        }
        let (rows, roles): (Vec<_>, Vec<_>) = match self.by_id(search).await? {
            Some(row) => (vec![row], vec![Vec::new()]),
            None => by_fact.into_iter().map(|found| (found.row, found.roles)).unzip(),
        };
        let found = self.queries.summaries(&search.caller, rows).await?.into_iter().zip(roles);
        let found =
            found.map(|(decision, roles)| FoundDecision { decision: Some(decision), roles });
        Ok(found.collect())
    }

    /// Finds a decision by its id, or by the id's last part.
    async fn by_id(&self, search: &Search) -> Result<Option<DecisionSummaryRow>, ApiError> {
        let last = search.text.rsplit(':').next().unwrap_or_default();
        let Ok(id) = DecisionId::parse(&format!("{}{last}", DecisionId::PREFIX)) else {
            return Ok(None);
        };
        let (scope, caller) = (search.caller.scope(), search.caller.clone());
        let found = self.queries.store.read_tx(&scope, async move |db| {
            let query = readable(&id, &caller).select(DecisionSummaryRow::as_select());
            Ok::<_, store::Error>(query.first(db).await.optional()?)
        });
        Ok(found.await?)
    }

    async fn indexed_until(&self, search: &Search) -> Result<Option<Time>, ApiError> {
        let read = async |db: &mut Db| {
            let until = fact_cursor::table.select(fact_cursor::indexed_until);
            let until: String = until.first(db).await?;
            Ok::<_, store::Error>(until)
        };
        let until = self.queries.store.read_tx(&search.caller.scope(), read).await?;
        Ok(time_of(&until).map(Into::into))
    }
}

/// Cuts a group down to [`MOST`] results. Returns whether there are more.
fn cut<T>(mut found: Vec<T>) -> (Vec<T>, bool) {
    let has_more = found.len() > MOST;
    found.truncate(MOST);
    (found, has_more)
}

#[tonic::async_trait]
impl SearchService for SearchHandlers {
    async fn search(&self, call: Request<SearchRequest>) -> Reply<SearchResponse> {
        let (caller, by) = admitted(call)?;
        Ok(Response::new(self.run(caller, by).await?))
    }
}
