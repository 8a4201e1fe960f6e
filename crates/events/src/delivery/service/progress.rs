//! Replays and their progress.

use authority_api::{error::ApiError, identity::Caller, page, page_token::PageTokens};
use authority_model::proto::events::{
    GetWebhookReplayRequest, ListWebhookReplaysRequest, ListWebhookReplaysResponse, LostEvents,
    WebhookReplay,
};
use authority_store::{self as store, Db, RunQueryDsl};
use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz},
};

use super::{super::shared::Shared, find::exists};

pub(super) const KIND: &str = "replay";
const PAGE: i32 = 100;

/// The check for open deliveries is a single probe of an index, however many there are.
const REPLAY: &str = "SELECT r.*, EXISTS (SELECT FROM webhook_deliveries d \
         WHERE d.replay_id = r.id AND d.state = 'open') AS sends \
     FROM webhook_replays r WHERE r.endpoint_id = $1";

const COUNTS: &str = "SELECT count(*) FILTER (WHERE state = 'delivered') AS delivered, \
         count(*) FILTER (WHERE state = 'dead') AS dead, \
         count(*) FILTER (WHERE state = 'open') AS open, \
         count(*) FILTER (WHERE state = 'cancelled') AS cancelled \
     FROM webhook_deliveries WHERE replay_id = $1";

impl Shared {
    pub(super) async fn show_replay(
        &self,
        caller: &Caller,
        request: GetWebhookReplayRequest,
    ) -> Result<WebhookReplay, ApiError> {
        let show = async move |db: &mut Db| show(db, &request.id, &request.replay_id).await;
        self.store.read_tx(&caller.scope(), show).await
    }

    pub(super) async fn list_replays(
        &self,
        caller: &Caller,
        request: ListWebhookReplaysRequest,
    ) -> Result<ListWebhookReplaysResponse, ApiError> {
        let tokens = PageTokens::of(&self.keys, caller, &request);
        let before = tokens.read(&request.page_token)?;
        let before = before.map(|place| String::from_utf8(place).unwrap_or_default());
        let size = usize::try_from(request.limit.unwrap_or(PAGE)).unwrap_or_default();
        let read = self.store.read_tx(&caller.scope(), async move |db| {
            exists(db, &request.id).await?;
            // Newest first: ids begin with the time of creation.
            let page = [REPLAY, " AND ($2 IS NULL OR r.id < $2) ORDER BY r.id DESC LIMIT $3"];
            let rows = diesel::sql_query(page.concat())
                .bind::<Text, _>(&request.id)
                .bind::<Nullable<Text>, _>(before)
                .bind::<BigInt, _>(i64::try_from(size + 1).unwrap_or(i64::MAX))
                .load(db)
                .await;
            let rows: Vec<ReplayRow> = rows.map_err(store::Error::from)?;
            Ok::<_, ApiError>(rows)
        });
        let mut replays: Vec<_> = read.await?.into_iter().map(WebhookReplay::from).collect();
        let goes_on = page::cut(&mut replays, size);
        let last = replays.last().filter(|_| goes_on);
        let next_page_token = last.map(|last| tokens.write(last.id.as_bytes()));
        Ok(ListWebhookReplaysResponse { replays, next_page_token })
    }
}

/// Returns one replay, with the number of its deliveries in each state.
pub(super) async fn show(
    db: &mut Db,
    endpoint_id: &str,
    id: &str,
) -> Result<WebhookReplay, ApiError> {
    let found = diesel::sql_query([REPLAY, " AND r.id = $2"].concat())
        .bind::<Text, _>(endpoint_id)
        .bind::<Text, _>(id)
        .get_result(db)
        .await
        .optional();
    let found: Option<ReplayRow> = found.map_err(store::Error::from)?;
    let found = found.ok_or_else(|| ApiError::not_found(KIND, id))?;
    let counts = diesel::sql_query(COUNTS).bind::<Text, _>(id).get_result(db).await;
    let counts: Counts = counts.map_err(store::Error::from)?;
    Ok(WebhookReplay {
        delivered: Some(counts.delivered),
        dead: Some(counts.dead),
        open: Some(counts.open),
        cancelled: Some(counts.cancelled),
        ..found.into()
    })
}

#[derive(QueryableByName)]
struct Counts {
    #[diesel(sql_type = BigInt)]
    delivered: i64,
    #[diesel(sql_type = BigInt)]
    dead: i64,
    #[diesel(sql_type = BigInt)]
    open: i64,
    #[diesel(sql_type = BigInt)]
    cancelled: i64,
}

#[derive(QueryableByName)]
struct ReplayRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    endpoint_id: String,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = Bool)]
    sends: bool,
    #[diesel(sql_type = Text)]
    only_state: String,
    #[diesel(sql_type = Array<Text>)]
    event_types: Vec<String>,
    #[diesel(sql_type = BigInt)]
    after_sequence: i64,
    #[diesel(sql_type = BigInt)]
    until_sequence: i64,
    #[diesel(sql_type = BigInt)]
    position: i64,
    #[diesel(sql_type = BigInt)]
    made: i64,
    #[diesel(sql_type = Timestamptz)]
    created_at: DateTime<Utc>,
    #[diesel(sql_type = Text)]
    created_by: String,
    #[diesel(sql_type = Timestamptz)]
    updated_at: DateTime<Utc>,
    #[diesel(sql_type = Nullable<BigInt>)]
    lost_from: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    lost_to: Option<i64>,
}

/// Leaves out the numbers of deliveries in each state, which need another query.
impl From<ReplayRow> for WebhookReplay {
    fn from(row: ReplayRow) -> Self {
        Self {
            id: row.id,
            endpoint_id: row.endpoint_id,
            state: match row.state.as_str() {
                "done" if row.sends => "sending".to_owned(),
                _ => row.state,
            },
            only: row.only_state,
            event_types: row.event_types,
            first_sequence: row.after_sequence + 1,
            last_sequence: row.until_sequence,
            judged_sequence: row.position,
            deliveries: row.made,
            lost: row.lost_from.zip(row.lost_to).map(|(from, to)| LostEvents { from, to }),
            created_at: Some(row.created_at.into()),
            created_by: row.created_by,
            updated_at: Some(row.updated_at.into()),
            ..Self::default()
        }
    }
}
