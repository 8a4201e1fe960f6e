//! Sends a test event.

use std::time::Duration;

use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency::{Done, IdempotencyKey, execute},
    identity::Caller,
    rate_limit::{AppliedLimits, RateLimit, Remaining},
};
use authority_ids::RecordId;
use authority_model::proto::events::{TestWebhookEndpointRequest, TestWebhookEndpointResponse};
use authority_store::{self as store, Db, RunQueryDsl, new_id};
use authority_webhook::{
    envelope::{Event, canonical_data},
    event_types::EventType,
    retry::ErrorClass,
};
use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{BigInt, Double, Integer, Nullable, Text},
};
use serde_json::{Map, Value};
use tokio::time::Instant;
use tonic::Response;

use super::{
    super::{
        attempt::{Message, Outcome},
        check::Unsent,
        endpoint::{COLUMNS, Endpoint, EndpointRow},
        places::count_held,
        shared::Shared,
    },
    call::{Call, Seen},
};

/// The rate limit of test events for each endpoint.
pub const RATE_LIMIT: RateLimit =
    RateLimit { name: "webhook_tests_per_endpoint", limit: 10, window_seconds: 60 };
/// Counts one more test in the current window. Changes no row if the limit is reached.
const COUNT: &str = "UPDATE webhook_cursors \
     SET tests = CASE WHEN tested_from > clock_timestamp() - make_interval(secs => $2) \
                      THEN tests + 1 ELSE 1 END, \
         tested_from = CASE WHEN tested_from > clock_timestamp() - make_interval(secs => $2) \
                            THEN tested_from ELSE clock_timestamp() END \
     WHERE endpoint_id = $1 \
       AND NOT (tested_from > clock_timestamp() - make_interval(secs => $2) AND tests >= $3)";
/// The tests in the current window, and the seconds until its end. The window may have ended.
const COUNTED: &str = "SELECT tests, \
            ceil(extract(epoch FROM tested_from - clock_timestamp()) + $2)::bigint AS seconds \
     FROM webhook_cursors WHERE endpoint_id = $1";
/// Closes the breaker and ends the wait of `Retry-After`, after the receiver accepted a test event.
const CLOSE: &str = "UPDATE webhook_cursors \
     SET breaker = 'closed', breaker_count = 0, breaker_until = NULL, waits_until = NULL \
     WHERE endpoint_id = $1";
/// The time limit for the response. It is shorter than for a delivery, because the API call has a
/// deadline of its own.
const WHOLE: Duration = Duration::from_secs(8);
const ACTIVE: &str = "active";

impl Shared {
    /// Sends a test event.
    ///
    /// A repeated call with the same idempotency key gets the first response. Two calls at the same
    /// time may both send.
    pub(super) async fn test(
        &self,
        call: Call<TestWebhookEndpointRequest>,
    ) -> Result<Response<TestWebhookEndpointResponse>, ApiError> {
        let Call { caller, key, request } = call;
        if let Some((first, left)) = self.first_answer(&caller, key.clone(), &request.id).await? {
            return Ok(AppliedLimits::new(left, None).shown_in(first.reply()));
        }
        let (endpoint, left) = self.tested(&caller, request.id).await?;
        let answer = self.send_test(&caller, &endpoint).await?;
        let (scope, now) = (caller.scope(), self.clock.now());
        let done = execute(&self.store, &scope, now, key, async move |db: &mut Db| {
            if answer.delivered {
                let closed = diesel::sql_query(CLOSE).bind::<Text, _>(endpoint.id.as_str());
                closed.execute(db).await.map_err(store::Error::from)?;
            }
            Ok::<_, ApiError>(answer)
        });
        Ok(AppliedLimits::new(left, None).shown_in(done.await?.reply()))
    }

    /// Returns the response to the first call with this key, and the remaining tests.
    async fn first_answer(
        &self,
        caller: &Caller,
        key: Option<IdempotencyKey>,
        id: &str,
    ) -> Result<Option<Repeated>, ApiError> {
        let (Some(key), now) = (key, self.clock.now()) else { return Ok(None) };
        let id = id.to_owned();
        let found = self.store.read_tx(&caller.scope(), async move |db| {
            let Some(first) = key.find(db, now).await? else { return Ok::<_, ApiError>(None) };
            let counted = Counted::read(db, &id).await?;
            Ok(Some((first.read()?, counted.map(|counted| counted.left()))))
        });
        found.await
    }

    /// Counts a test, unless the rate limit is reached. Returns the endpoint and the remaining tests.
    async fn tested(
        &self,
        caller: &Caller,
        id: String,
    ) -> Result<(Endpoint, Option<Remaining>), ApiError> {
        let found = self.store.write_tx(&caller.scope(), async move |db| {
            permitted(db, &id).await?;
            let RateLimit { limit, window_seconds, .. } = RATE_LIMIT;
            let counted = diesel::sql_query(COUNT)
                .bind::<Text, _>(&id)
                .bind::<Double, _>(f64::from(window_seconds))
                .bind::<BigInt, _>(i64::from(limit))
                .execute(db)
                .await;
            let is_counted = counted.map_err(store::Error::from)? > 0;
            let counted = Counted::read(db, &id).await?;
            if !is_counted {
                let wait = counted.map_or(window_seconds.into(), |counted| counted.seconds());
                let text =
                    format!("at most {limit} tests of an endpoint in {window_seconds} seconds");
                return Err(RATE_LIMIT.refusal(text, wait.max(1)));
            }
            let query = ["SELECT ", COLUMNS, " FROM webhook_endpoints e WHERE e.id = $1"].concat();
            let row = diesel::sql_query(query).bind::<Text, _>(&id).get_result(db).await;
            let row: EndpointRow = row.map_err(store::Error::from)?;
            Ok::<_, ApiError>((row, counted.map(|counted| counted.left())))
        });
        let (row, left) = found.await?;
        let endpoint = row.open(&self.keys, &self.rules, self.clock.now()).map_err(|error| {
            tracing::error!(
                %error,
                endpoint.id = row.endpoint_id.as_str(),
                "failed to open a webhook endpoint"
            );
            ApiError::plain(ErrorCode::Internal)
        })?;
        Ok((endpoint, left))
    }

    async fn send_test(
        &self,
        caller: &Caller,
        endpoint: &Endpoint,
    ) -> Result<TestWebhookEndpointResponse, ApiError> {
        let event_id = String::from(RecordId::new("event", new_id()));
        let body = self
            .test_event(&event_id, endpoint)
            .ok_or_else(|| ApiError::plain(ErrorCode::Internal))?;
        let message = Message { event_id: &event_id, body: &body.into(), replay_id: None };
        let id = endpoint.id.clone();
        let still = self.store.read_tx(&caller.scope(), async move |db| permitted(db, &id).await);
        let may_send = async { still.await.map_err(|_| Unsent::Held) };
        let begun = Instant::now();
        let sent = self.send(endpoint, &message, WHOLE, may_send).await;
        count_held("test", begun.elapsed());
        let outcome = sent.map_err(|_| ApiError::plain(ErrorCode::Unavailable))?;
        Ok(answer(outcome))
    }

    fn test_event(&self, event_id: &str, endpoint: &Endpoint) -> Option<Vec<u8>> {
        let data = Map::from_iter([("endpoint_id".to_owned(), Value::from(endpoint.id.as_str()))]);
        let event = Event {
            event_id,
            event_type: EventType::test()?,
            occurred_at: self.clock.now(),
            tenant_id: &endpoint.tenant_id,
            sequence: None,
            subject_ref: &endpoint.id,
            actor_entity_id: None,
            principal_entity_id: None,
            reason_code: None,
            correlation_id: None,
            causation_id: None,
            data: &canonical_data(&data).ok()?,
            evidence_refs: &[],
        };
        event.canonical().ok()
    }
}

/// The first response under a key, and the remaining tests.
type Repeated = (Done<TestWebhookEndpointResponse>, Option<Remaining>);

/// A row of [`COUNTED`].
#[derive(QueryableByName)]
struct Counted {
    #[diesel(sql_type = Integer)]
    tests: i32,
    #[diesel(sql_type = Nullable<BigInt>)]
    seconds: Option<i64>,
}

impl Counted {
    async fn read(db: &mut Db, id: &str) -> Result<Option<Self>, ApiError> {
        let query = diesel::sql_query(COUNTED).bind::<Text, _>(id);
        let query = query.bind::<Double, _>(f64::from(RATE_LIMIT.window_seconds));
        let found = query.get_result(db).await.optional();
        Ok(found.map_err(store::Error::from)?)
    }

    /// The seconds until the end of the window; 0 after it.
    fn seconds(&self) -> u64 {
        self.seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or_default()
    }

    fn left(&self) -> Remaining {
        let tests = u32::try_from(self.tests).ok().filter(|_| self.seconds() > 0);
        let calls = RATE_LIMIT.limit.saturating_sub(tests.unwrap_or_default());
        Remaining::Calls { limit: RATE_LIMIT, calls, seconds: self.seconds().max(1) }
    }
}

/// Returns an error unless the endpoint's tenant is active.
async fn permitted(db: &mut Db, id: &str) -> Result<(), ApiError> {
    let endpoint = Seen::find(db, id).await?;
    if endpoint.tenant_state == ACTIVE {
        return Ok(());
    }
    let text = format!("the tenant is {}; test events can't be sent", endpoint.tenant_state);
    Err(ApiError::new(ErrorCode::TransitionNotAllowed, text))
}

fn answer(outcome: Outcome) -> TestWebhookEndpointResponse {
    let millis = outcome.latency.map(|latency| latency.as_millis());
    TestWebhookEndpointResponse {
        delivered: outcome.answer.succeeded(),
        status: outcome.answer.status.map(i32::from),
        latency_ms: millis.map(|millis| i32::try_from(millis).unwrap_or(i32::MAX)),
        error_class: outcome.class.map(ErrorClass::as_str).map(str::to_owned),
        body_start: outcome.body_start,
    }
}
