//! Exports of decisions and of entities' histories.

use authority_model::{
    proto::runtime::{
        EntityVersion, ExportDecisionsRequest, ExportDecisionsResponse, ExportEntityHistoryRequest,
        ExportEntityHistoryResponse, ListDecisionsRequest, ListEntityHistoryRequest,
    },
    schema::decisions,
    service::Messages,
    wire::Json,
};
use diesel::prelude::*;
use serde_json::Value;

use super::{
    answer,
    find::{DecisionQueries, Found, LIST, SHORT, bounded, matching},
    history::{EntityQueries, list_of},
};
use authority_api::{
    error::ApiError,
    identity::{Caller, Pages},
    page_token,
};
use authority_core::store::{self, RunQueryDsl};
use authority_crypto::sha256;

/// The most records in memory.
const PAGE: usize = 100;

impl DecisionQueries {
    pub(super) async fn export(
        &self,
        caller: Caller,
        asked: ExportDecisionsRequest,
    ) -> Result<Messages<ExportDecisionsResponse>, ApiError> {
        let by = ListDecisionsRequest::from(asked);
        bounded(&caller, &by)?;
        let before = page_token::read(&self.keys, LIST, &by.page_token)?;
        let before = before.map(|before| String::from_utf8(before).unwrap_or_default());
        let token = by.page_token.clone();
        let queries = self.clone();
        let pages = Decisions { queries, caller: caller.clone(), by, before, token, over: false };
        self.exports.stream(caller, pages).await
    }
}

impl EntityQueries {
    pub(super) async fn export(
        &self,
        caller: Caller,
        asked: ExportEntityHistoryRequest,
    ) -> Result<Messages<ExportEntityHistoryResponse>, ApiError> {
        let by = ListEntityHistoryRequest::from(asked);
        let queries = self.clone();
        let token = by.page_token.clone();
        let mut pages =
            History { queries, caller: caller.clone(), by, token, first: None, over: false };
        // A missing entity is an error, whatever other exports the caller has.
        pages.first = Some(pages.next().await?);
        self.exports.stream(caller, pages).await
    }
}

/// A decision of the list, with its proof.
type Row = (Found, Vec<u8>, String, Vec<u8>);

struct Decisions {
    queries: DecisionQueries,
    caller: Caller,
    by: ListDecisionsRequest,
    before: Option<String>,
    /// The position after the last line.
    token: String,
    over: bool,
}

impl Decisions {
    fn line(&mut self, row: Row) -> ExportDecisionsResponse {
        let (found, record, kid, signature) = row;
        self.token = page_token::write(&self.queries.keys, LIST, found.id.as_bytes());
        let pack = answer::pack(&sha256(&record), &kid, &signature);
        ExportDecisionsResponse {
            decision: Some(self.queries.summary(found)),
            page_token: self.token.clone(),
            end: false,
            record: match serde_json::from_slice(&record) {
                Ok(Value::Object(members)) => Some(Json(members)),
                _ => None,
            },
            evidence_pack: Some(pack),
        }
    }
}

impl Pages for Decisions {
    type Line = ExportDecisionsResponse;

    async fn next(&mut self) -> Result<Vec<Self::Line>, ApiError> {
        if self.over {
            return Ok(Vec::new());
        }
        let (scope, by, before) = (self.caller.scope(), self.by.clone(), self.before.take());
        let within = scope.tenant.clone();
        let read = self.queries.store.read_tx(&scope, async move |db| {
            diesel::sql_query(SHORT).execute(db).await?;
            let mut query = matching(&by, within.as_ref());
            if let Some(before) = before {
                query = query.filter(decisions::id.lt(before));
            }
            let columns =
                (Found::as_select(), decisions::record, decisions::kid, decisions::signature);
            let page = i64::try_from(PAGE).unwrap_or(i64::MAX);
            let query = query.order(decisions::id.desc()).limit(page).select(columns);
            Ok::<Vec<Row>, store::Error>(query.load(db).await?)
        });
        let rows = read.await?;
        self.over = rows.len() < PAGE;
        self.before = rows.last().map(|(last, ..)| last.id.clone());
        Ok(rows.into_iter().map(|row| self.line(row)).collect())
    }

    fn end(&self) -> Self::Line {
        ExportDecisionsResponse {
            page_token: self.token.clone(),
            end: true,
            ..ExportDecisionsResponse::default()
        }
    }
}

struct History {
    queries: EntityQueries,
    caller: Caller,
    by: ListEntityHistoryRequest,
    token: String,
    first: Option<Vec<ExportEntityHistoryResponse>>,
    over: bool,
}

impl History {
    fn line(&mut self, version: EntityVersion) -> ExportEntityHistoryResponse {
        let number: i64 = version.version.parse().unwrap_or_default();
        let list = list_of(&self.by.entity_id);
        self.token = page_token::write(&self.queries.keys, &list, &number.to_be_bytes());
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
