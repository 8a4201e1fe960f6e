//! Exports of decisions and of entities' histories.

use std::time::Instant;

use authority_model::{
    proto::runtime::{
        EntityVersion, ExportDecisionsRequest, ExportDecisionsResponse, ExportEntityHistoryRequest,
        ExportEntityHistoryResponse, ListDecisionsRequest, ListEntityHistoryRequest,
    },
    schema::decisions,
    service::Messages,
};
use chrono::{DateTime, Utc};
use diesel::{pg::Pg, prelude::*};
use tonic::Response;

use super::{
    answer,
    decision_cursor::SETTLED,
    decision_filter::{DecisionFilter, first_id, limit},
    decision_summary::DecisionSummaryRow,
    find::DecisionQueries,
    history::EntityQueries,
};
use authority_api::{
    error::ApiError,
    identity::{Caller, Pages},
    named_tenant,
    page_token::PageTokens,
};
use authority_crypto::sha256;
use authority_ids::DecisionId;
use authority_store::{self as store, RunQueryDsl};

/// The maximum number of records in memory.
const PAGE: usize = 100;

impl DecisionQueries {
    pub(super) async fn export(
        &self,
        caller: Caller,
        asked: ExportDecisionsRequest,
    ) -> Result<Response<Messages<ExportDecisionsResponse>>, ApiError> {
        let (with_context, after) = (asked.context, asked.after.clone());
        let within = caller.scope().tenant;
        named_tenant::known(&self.store, &caller, asked.tenant_id.as_deref()).await?;
        let filter = DecisionFilter::new(ListDecisionsRequest::from(asked), within)?;
        if let Some(after) = &after
            && DecisionId::parse(after).is_err()
        {
            return Err(ApiError::field("after", "must be the id of a decision"));
        }
        let now = self.clock.now();
        let pages = Decisions {
            queries: self.clone(),
            caller: caller.clone(),
            filter,
            with_context,
            after: after.unwrap_or_default(),
            end: first_id(now.into()),
            settled: settled(now),
            count: 0,
            over: false,
        };
        self.exports.stream(caller, pages).await
    }
}

impl EntityQueries {
    pub(super) async fn export(
        &self,
        caller: Caller,
        asked: ExportEntityHistoryRequest,
    ) -> Result<Response<Messages<ExportEntityHistoryResponse>>, ApiError> {
        type Export = ExportEntityHistoryRequest;
        let mut by = ListEntityHistoryRequest::from(asked);
        let queries = self.clone();
        let tokens = PageTokens::of_export::<Export>(&self.keys, &caller, &by);
        let token = by.page_token.clone();
        if let Some(place) = tokens.read(&token)? {
            // The pages of the list are read.
            by.page_token = PageTokens::of(&self.keys, &caller, &by).write(&place);
        }
        let mut pages = History {
            queries,
            caller: caller.clone(),
            by,
            tokens,
            token,
            first: None,
            over: false,
        };
        // A missing entity is an error, even if the caller has reached the limit of exports.
        pages.first = Some(pages.next().await?);
        self.exports.stream(caller, pages).await
    }
}

/// A decision of the list, with its proof and its context.
#[derive(Queryable, Selectable)]
#[diesel(table_name = decisions, check_for_backend(Pg))]
struct ExportRow {
    #[diesel(embed)]
    found: DecisionSummaryRow,
    kid: String,
    signature: Vec<u8>,
    context_salt: Vec<u8>,
}

struct Decisions {
    queries: DecisionQueries,
    caller: Caller,
    filter: DecisionFilter,
    with_context: bool,
    /// The last decision sent, or the decision to start after.
    after: String,
    /// Decisions from this ID on are not included.
    end: String,
    /// No more decisions with lower IDs can be stored.
    settled: String,
    count: i64,
    over: bool,
}

impl Decisions {
    fn line(&self, row: ExportRow) -> ExportDecisionsResponse {
        let pack = answer::pack(&sha256(&row.found.record), &row.kid, &row.signature);
        let context = answer::context(&row.found.context, &row.context_salt);
        let context = context.filter(|_| self.with_context);
        let record = answer::object(&row.found.record);
        // The amount is a part of the context.
        let members = context.as_ref().and_then(|context| Some(&context.value.as_ref()?.0));
        let decision = row.found.exported(&self.queries.receipts, members);
        ExportDecisionsResponse {
            decision: Some(decision),
            record,
            evidence_pack: Some(pack),
            context,
            ..ExportDecisionsResponse::default()
        }
    }
}

impl Pages for Decisions {
    type Line = ExportDecisionsResponse;

    async fn next(&mut self) -> Result<Vec<Self::Line>, ApiError> {
        if self.over {
            return Ok(Vec::new());
        }
        let most = i64::try_from(PAGE).unwrap_or(i64::MAX);
        let queries = self.filter.oldest(&self.after, &self.end, most);
        let (scope, begun) = (self.caller.scope(), Instant::now());
        let read = self.queries.store.read_tx(&scope, async move |db| {
            limit(db).await?;
            let mut rows: Vec<ExportRow> = Vec::new();
            for query in queries {
                rows.extend(query.select(ExportRow::as_select()).load::<ExportRow>(db).await?);
            }
            Ok::<_, store::Error>(rows)
        });
        let mut rows = read.await.map_err(|error| self.filter.fault(error, begun))?;
        rows.sort_unstable_by(|one, other| one.found.id.cmp(&other.found.id));
        rows.truncate(PAGE);
        self.over = rows.len() < PAGE;
        if let Some(last) = rows.last() {
            self.after.clone_from(&last.found.id);
        }
        self.count += i64::try_from(rows.len()).unwrap_or_default();
        Ok(rows.into_iter().map(|row| self.line(row)).collect())
    }

    /// Returns the last line, with the position to continue from. An empty export has the position
    /// where it started.
    fn end(&self) -> Self::Line {
        let next = self.after.as_str().min(&self.settled);
        ExportDecisionsResponse {
            end: true,
            next: Some(next.to_owned()).filter(|next| !next.is_empty()),
            count: Some(self.count),
            ..ExportDecisionsResponse::default()
        }
    }
}

/// Returns the first ID of the time span in which decisions may still be stored.
fn settled(now: DateTime<Utc>) -> String {
    let millis = (now - SETTLED).timestamp_millis();
    DecisionId::new(u64::try_from(millis).unwrap_or_default(), &[0; 32]).into()
}

struct History {
    queries: EntityQueries,
    caller: Caller,
    by: ListEntityHistoryRequest,
    tokens: PageTokens,
    /// The token to continue after the last line.
    token: String,
    first: Option<Vec<ExportEntityHistoryResponse>>,
    over: bool,
}

impl History {
    fn line(&mut self, version: EntityVersion) -> ExportEntityHistoryResponse {
        let number: i64 = version.version.parse().unwrap_or_default();
        self.token = self.tokens.write(&number.to_be_bytes());
        ExportEntityHistoryResponse {
            version: Some(version),
            page_token: self.token.clone(),
            end: false,
        }
    }
}

impl Pages for History {
    type Line = ExportEntityHistoryResponse;

    async fn next(&mut self) -> Result<Vec<Self::Line>, ApiError> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        if self.over {
            return Ok(Vec::new());
        }
        let page = self.queries.history(&self.caller, self.by.clone()).await?;
        self.over = page.next_page_token.is_none();
        self.by.page_token = page.next_page_token.unwrap_or_default();
        Ok(page.versions.into_iter().map(|version| self.line(version)).collect())
    }

    fn end(&self) -> Self::Line {
        ExportEntityHistoryResponse { version: None, page_token: self.token.clone(), end: true }
    }
}
