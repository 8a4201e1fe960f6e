//! Lists deliveries with their attempts.

use std::collections::HashMap;

use authority_api::{error::ApiError, identity::Caller, page, page_token::PageTokens};
use authority_model::{
    proto::events::{WebhookAttempt, WebhookDelivery},
    wire::Time,
};
use authority_store::{self as store, Db, RunQueryDsl};
use authority_webhook::event_types::EventType;
use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, QueryResult, QueryableByName,
    sql_types::{Array, BigInt, Integer, Nullable, Text, Timestamptz},
};

use super::super::shared::Shared;

const PAGE: i32 = 100;

const COLUMNS: &str = "id, tenant_id, endpoint_id, event_id, event_type, sequence, replay_id, state, \
     CASE state WHEN 'open' THEN due_at END AS due_at, created_at, ended_at";

/// Newest first: ids begin with the time of creation.
const PAGED: &str = " FROM webhook_deliveries WHERE endpoint_id = $1 \
     AND ($2 IS NULL OR state = $2) AND ($3 IS NULL OR event_type = $3) AND ($4 IS NULL OR id < $4) \
     ORDER BY id DESC LIMIT $5";

const ATTEMPTS: &str = "SELECT id, attempt, at, status, error_class, latency_ms, body_start \
     FROM webhook_attempts WHERE id = ANY ($1) ORDER BY id, attempt";

/// Selects deliveries of an endpoint.
pub(super) struct Filter {
    pub(super) endpoint_id: String,
    pub(super) state: Option<String>,
    pub(super) event_type: Option<String>,
    pub(super) limit: Option<i32>,
    pub(super) page_token: String,
}

impl Shared {
    /// Returns a page of deliveries and the token of the next page.
    pub(super) async fn find(
        &self,
        caller: &Caller,
        tokens: &PageTokens,
        by: Filter,
    ) -> Result<(Vec<WebhookDelivery>, Option<String>), ApiError> {
        if let Some(Err(unknown)) = by.event_type.as_deref().map(EventType::find) {
            return Err(ApiError::field("event_type", unknown.to_string()));
        }
        let before = tokens.read(&by.page_token)?;
        let before = before.map(|place| String::from_utf8(place).unwrap_or_default());
        let size = usize::try_from(by.limit.unwrap_or(PAGE)).unwrap_or_default();
        let found = self.store.read_tx(&caller.scope(), async move |db| {
            exists(db, &by.endpoint_id).await?;
            let rows = page(db, &by, before.as_deref(), size + 1).await;
            let rows = rows.map_err(store::Error::from)?;
            Ok::<_, ApiError>(with_attempts(db, rows).await.map_err(store::Error::from)?)
        });
        let mut found = found.await?;
        let goes_on = page::cut(&mut found, size);
        let last = found.last().filter(|_| goes_on);
        let next = last.map(|last| tokens.write(last.id.as_bytes()));
        Ok((found, next))
    }
}

/// Returns one delivery.
pub(super) async fn one(db: &mut Db, id: &str) -> Result<WebhookDelivery, ApiError> {
    let query = ["SELECT ", COLUMNS, " FROM webhook_deliveries WHERE id = $1"].concat();
    let rows: Vec<Delivery> =
        diesel::sql_query(query).bind::<Text, _>(id).load(db).await.map_err(store::Error::from)?;
    let found = with_attempts(db, rows).await.map_err(store::Error::from)?.pop();
    found.ok_or_else(|| ApiError::not_found("delivery", id))
}

/// Returns an error if the caller can't see the endpoint.
pub(super) async fn exists(db: &mut Db, endpoint_id: &str) -> Result<(), ApiError> {
    let found = diesel::sql_query("SELECT id FROM webhook_endpoints WHERE id = $1")
        .bind::<Text, _>(endpoint_id)
        .get_result(db)
        .await
        .optional();
    let found: Option<Id> = found.map_err(store::Error::from)?;
    match found {
        Some(Id { .. }) => Ok(()),
        None => Err(ApiError::not_found("webhook_endpoint", endpoint_id)),
    }
}

async fn page(
    db: &mut Db,
    by: &Filter,
    before: Option<&str>,
    size: usize,
) -> QueryResult<Vec<Delivery>> {
    diesel::sql_query(["SELECT ", COLUMNS, PAGED].concat())
        .bind::<Text, _>(&by.endpoint_id)
        .bind::<Nullable<Text>, _>(by.state.as_deref())
        .bind::<Nullable<Text>, _>(by.event_type.as_deref())
        .bind::<Nullable<Text>, _>(before)
        .bind::<BigInt, _>(i64::try_from(size).unwrap_or(i64::MAX))
        .load(db)
        .await
}

async fn with_attempts(db: &mut Db, rows: Vec<Delivery>) -> QueryResult<Vec<WebhookDelivery>> {
    let ids: Vec<&str> = rows.iter().map(|row| &*row.id).collect();
    let attempts: Vec<Attempt> =
        diesel::sql_query(ATTEMPTS).bind::<Array<Text>, _>(ids).load(db).await?;
    let mut by_id: HashMap<String, Vec<WebhookAttempt>> = HashMap::new();
    for row in attempts {
        by_id.entry(row.id.clone()).or_default().push(row.into());
    }
    let shown = rows.into_iter().map(|row| {
        let attempts = by_id.remove(&row.id).unwrap_or_default();
        WebhookDelivery {
            id: row.id,
            tenant_id: row.tenant_id,
            endpoint_id: row.endpoint_id,
            event_id: row.event_id,
            event_type: row.event_type,
            sequence: row.sequence,
            replay_id: row.replay_id,
            state: row.state,
            due_at: row.due_at.map(Time::from),
            attempts,
            created_at: Some(row.created_at.into()),
            ended_at: row.ended_at.map(Time::from),
        }
    });
    Ok(shown.collect())
}

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = Text)]
    #[expect(dead_code, reason = "only the row's existence matters")]
    id: String,
}

#[derive(QueryableByName)]
struct Delivery {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    tenant_id: String,
    #[diesel(sql_type = Text)]
    endpoint_id: String,
    #[diesel(sql_type = Text)]
    event_id: String,
    #[diesel(sql_type = Text)]
    event_type: String,
    #[diesel(sql_type = BigInt)]
    sequence: i64,
    #[diesel(sql_type = Nullable<Text>)]
    replay_id: Option<String>,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    due_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = Timestamptz)]
    created_at: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    ended_at: Option<DateTime<Utc>>,
}

#[derive(QueryableByName)]
struct Attempt {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Integer)]
    attempt: i32,
    #[diesel(sql_type = Timestamptz)]
    at: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Integer>)]
    status: Option<i32>,
    #[diesel(sql_type = Nullable<Text>)]
    error_class: Option<String>,
    #[diesel(sql_type = Nullable<Integer>)]
    latency_ms: Option<i32>,
    #[diesel(sql_type = Nullable<Text>)]
    body_start: Option<String>,
}

impl From<Attempt> for WebhookAttempt {
    fn from(row: Attempt) -> Self {
        Self {
            attempt: row.attempt,
            at: Some(row.at.into()),
            status: row.status,
            error_class: row.error_class,
            latency_ms: row.latency_ms,
            body_start: row.body_start,
        }
    }
}
