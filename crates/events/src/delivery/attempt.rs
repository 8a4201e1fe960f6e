//! One attempt: connect, look once more whether it may be sent, sign, send.

use std::{sync::Arc, time::Duration};

use authority_core::store::{self, RunQueryDsl, Scope};
use authority_webhook::{
    destination::EndpointUrl,
    retry::{Answer, ErrorClass, retry_after},
    signing::{Attempt, SigningKeys, sign},
};
use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{Bool, Text},
};
use http::{HeaderName, HeaderValue, Request, Uri, header};
use http_body_util::Full;
use tokio::time::{Instant, timeout_at};

use super::{
    Shared,
    claim::Job,
    client::{Outgoing, Received, WHOLE, host_header},
    endpoint::Endpoint,
};

const AGENT: HeaderValue = HeaderValue::from_static("agent-authority-webhooks/1");
/// Names the replay that a delivery belongs to.
const REPLAY: HeaderName = HeaderName::from_static("svc-replay");

/// Whether the delivery may still be sent: leased by whoever claimed it, for longer than an attempt takes,
/// its endpoint active, and its tenant.
const MAY_SEND: &str = "SELECT EXISTS (SELECT FROM webhook_deliveries d \
     JOIN webhook_endpoints e ON e.id = d.endpoint_id AND e.state = 'active' \
     JOIN tenants t ON t.id = e.tenant_id AND t.state = 'active' \
     WHERE d.id = $1 AND d.lease = $2::uuid AND d.state = 'open' \
       AND d.leased_until > clock_timestamp() + interval '16 s') AS permitted";

/// How an attempt ended.
pub(super) struct Outcome {
    pub(super) at: DateTime<Utc>,
    pub(super) answer: Answer,
    pub(super) class: Option<ErrorClass>,
    pub(super) latency: Option<Duration>,
    pub(super) body_start: Option<String>,
}

/// What became of a claimed delivery.
pub(super) enum Ending {
    Attempted(Outcome),
    /// It was not sent: no attempt is spent.
    Unspent,
    /// Its event is no longer kept.
    Expired,
}

/// A claimed delivery, and what became of it.
pub(super) type Ended = (Arc<Job>, Ending);

/// What an attempt sends.
pub(super) struct Message<'a> {
    pub(super) event_id: &'a str,
    pub(super) body: &'a bytes::Bytes,
    pub(super) replay_id: Option<&'a str>,
}

impl Shared {
    /// Sends one delivery.
    pub(super) async fn attempt(&self, job: &Job) -> Ending {
        let Some(body) = &job.body else { return Ending::Expired };
        let replay_id = job.replay_id.as_deref();
        let message = Message { event_id: &job.event_id, body, replay_id };
        match self.send(&job.endpoint, &message, WHOLE, self.may_send(job)).await {
            Some(outcome) => Ending::Attempted(outcome),
            None => Ending::Unspent,
        }
    }

    /// Sends a message to an endpoint, unless `may_send` says no once there is a connection. Waits `whole` for
    /// the answer.
    pub(super) async fn send(
        &self,
        endpoint: &Endpoint,
        message: &Message<'_>,
        whole: Duration,
        may_send: impl Future<Output = bool>,
    ) -> Option<Outcome> {
        let (at, started) = (self.clock.now(), Instant::now());
        let sent = self.exchange(endpoint, message, may_send, started + whole).await;
        let answered = match sent {
            Ok(received) => Ok(received),
            Err(Stop::Failed(class)) => Err(class),
            Err(Stop::Unspent) => return None,
        };
        Some(outcome(endpoint, answered, at, started, self.clock.now()))
    }

    async fn exchange(
        &self,
        endpoint: &Endpoint,
        message: &Message<'_>,
        may_send: impl Future<Output = bool>,
        until: Instant,
    ) -> Result<Received, Stop> {
        let url = endpoint.url.as_ref().ok_or(ErrorClass::Address)?;
        let connection = self.client.connect(url).await?;
        if !timeout_at(until, may_send).await.unwrap_or(false) {
            return Err(Stop::Unspent);
        }
        let request = self.request(endpoint, url, message)?;
        Ok(self.client.exchange(url, connection, request, until).await?)
    }

    /// The request, signed now.
    fn request(
        &self,
        endpoint: &Endpoint,
        url: &EndpointUrl,
        message: &Message<'_>,
    ) -> Result<Outgoing, Stop> {
        let signer = self.signer(&endpoint.suites).ok_or(Stop::Unspent)?;
        let (event_id, body, at) = (message.event_id, message.body, self.clock.now());
        let attempt = Attempt { event_id, url, body, at };
        let keys =
            SigningKeys { secrets: &endpoint.secrets, signer: &signer, issuer: &self.issuer };
        let written = sign(&attempt, &endpoint.suites, &keys)
            .map_err(|error| error.to_string())
            .and_then(|signed| write(endpoint, url, message, signed).map_err(|e| e.to_string()));
        written.map_err(|error| {
            tracing::error!(endpoint_id = endpoint.id, error, "no request can be written");
            Stop::Failed(ErrorClass::Address)
        })
    }

    /// Asked right before sending.
    async fn may_send(&self, job: &Job) -> bool {
        // Few at a time: other work needs the database as well.
        let Ok(_permit) = self.checks.acquire().await else { return false };
        let (id, lease) = (job.id.clone(), job.lease.clone());
        let checked = self.store.read_tx(&Scope::service(), async move |db| {
            let check = diesel::sql_query(MAY_SEND).bind::<Text, _>(id).bind::<Text, _>(lease);
            let found: Permitted = check.get_result(db).await?;
            Ok::<_, store::Error>(found.permitted)
        });
        checked.await.unwrap_or(false)
    }
}

fn write(
    endpoint: &Endpoint,
    url: &EndpointUrl,
    message: &Message<'_>,
    signed: Vec<(HeaderName, HeaderValue)>,
) -> Result<Outgoing, http::Error> {
    let uri: Uri = url.as_str().parse()?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::post(path).body(Full::new(message.body.clone()))?;
    let headers = request.headers_mut();
    headers.insert(header::USER_AGENT, AGENT);
    let own = endpoint.headers.iter().cloned();
    let host = (header::HOST, host_header(url)?);
    let replay = message.replay_id.map(HeaderValue::from_str).transpose()?;
    let all = own.chain([host]).chain(signed).chain(replay.map(|id| (REPLAY, id)));
    all.for_each(|(name, value)| drop(headers.insert(name, value)));
    Ok(request)
}

#[derive(QueryableByName)]
struct Permitted {
    #[diesel(sql_type = Bool)]
    permitted: bool,
}

/// Why there is no answer.
enum Stop {
    Failed(ErrorClass),
    Unspent,
}

impl From<ErrorClass> for Stop {
    fn from(class: ErrorClass) -> Self {
        Self::Failed(class)
    }
}

fn outcome(
    endpoint: &Endpoint,
    answered: Result<Received, ErrorClass>,
    at: DateTime<Utc>,
    started: Instant,
    now: DateTime<Utc>,
) -> Outcome {
    let received = match answered {
        Ok(received) => received,
        Err(class) => {
            return Outcome {
                at,
                answer: Answer { status: None, retry_after: None },
                class: Some(class),
                // How long a look-up took tells of networks.
                latency: (class != ErrorClass::Address).then(|| started.elapsed()),
                body_start: None,
            };
        }
    };
    let asked = received.retry_after.as_deref().and_then(|value| retry_after(value, now));
    let answer = Answer { status: Some(received.status), retry_after: asked };
    Outcome {
        at,
        answer,
        class: (!answer.succeeded()).then_some(ErrorClass::Http),
        latency: Some(received.answered_at - started),
        body_start: received.shown(&endpoint.hidden()),
    }
}

/// One claimed delivery from its claim to its ending, which the worker records.
pub(super) async fn run(shared: Arc<Shared>, job: Arc<Job>) -> Ended {
    let ending = shared.attempt(&job).await;
    (job, ending)
}
