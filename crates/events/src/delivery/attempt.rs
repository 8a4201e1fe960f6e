//! One delivery attempt: connects, checks that the delivery may still be sent, signs and sends.

use std::{sync::Arc, time::Duration};

use authority_ids::RecordRef;
use authority_webhook::{
    destination::EndpointUrl,
    retry::{Answer, ErrorClass, retry_after},
    signing::{Attempt, SigningKeys, sign},
};
use chrono::{DateTime, Utc};
use http::{HeaderName, HeaderValue, Request, Uri, header};
use http_body_util::Full;
use tokio::time::{Instant, timeout_at};

use super::{
    check::Unsent,
    client::{Outgoing, Received, WHOLE, host_header},
    endpoint::Endpoint,
    job::Job,
    places::count_held,
    shared::Shared,
};

const AGENT: HeaderValue = HeaderValue::from_static("agent-authority-webhooks/1");
/// The header with the id of the replay that a delivery belongs to.
const REPLAY: HeaderName = HeaderName::from_static("svc-replay");

/// How an attempt ended.
pub(super) struct Outcome {
    pub(super) at: DateTime<Utc>,
    pub(super) answer: Answer,
    pub(super) class: Option<ErrorClass>,
    pub(super) latency: Option<Duration>,
    pub(super) body_start: Option<String>,
}

/// The result of a claimed delivery.
pub(super) enum Ending {
    Attempted(Outcome),
    /// The delivery was chosen but not sent. It is due again after a short delay and does not count
    /// as an attempt.
    Unspent,
    /// The delivery is released: any node may claim it at once.
    Released,
    /// The delivery's event was deleted by retention.
    Expired,
}

/// A chosen delivery with the attempt's duration, and its result or the reason for not sending it.
pub(super) struct AttemptResult {
    pub(super) job: Arc<Job>,
    pub(super) result: Result<Ending, Unsent>,
    pub(super) took: Duration,
}

/// The content of an attempt.
pub(super) struct Message<'a> {
    pub(super) event_id: &'a str,
    pub(super) body: &'a bytes::Bytes,
    pub(super) replay_id: Option<&'a RecordRef>,
}

impl Shared {
    /// Sends one delivery.
    async fn attempt(&self, job: &Job) -> Result<Ending, Unsent> {
        let Some(body) = &job.body else { return Ok(Ending::Expired) };
        let replay_id = job.replay_id.as_ref();
        let message = Message { event_id: &job.event_id, body, replay_id };
        let may_send = self.checks.may_send(job);
        self.send(&job.endpoint, &message, WHOLE, may_send).await.map(Ending::Attempted)
    }

    /// Sends a message to an endpoint and waits up to `whole` for the response.
    ///
    /// After connecting, `may_send` decides whether the message is sent.
    pub(super) async fn send(
        &self,
        endpoint: &Endpoint,
        message: &Message<'_>,
        whole: Duration,
        may_send: impl Future<Output = Result<(), Unsent>>,
    ) -> Result<Outcome, Unsent> {
        let (at, started) = (self.clock.now(), Instant::now());
        let sent = self.exchange(endpoint, message, may_send, started + whole).await;
        let answered = match sent {
            Ok(received) => Ok(received),
            Err(Stop::Failed(class)) => Err(class),
            Err(Stop::Unsent(why)) => return Err(why),
        };
        Ok(outcome(endpoint, answered, at, started, self.clock.now()))
    }

    async fn exchange(
        &self,
        endpoint: &Endpoint,
        message: &Message<'_>,
        may_send: impl Future<Output = Result<(), Unsent>>,
        until: Instant,
    ) -> Result<Received, Stop> {
        let url = endpoint.url.as_ref().ok_or(ErrorClass::Address)?;
        let connection = self.client.connect(url).await?;
        if let Err(why) = timeout_at(until, may_send).await.unwrap_or(Err(Unsent::Unknown)) {
            self.client.keep(connection);
            return Err(Stop::Unsent(why));
        }
        let request = self.request(endpoint, url, message)?;
        Ok(self.client.exchange(url, connection, request, until).await?)
    }

    /// Builds the request and signs it with the current time.
    fn request(
        &self,
        endpoint: &Endpoint,
        url: &EndpointUrl,
        message: &Message<'_>,
    ) -> Result<Outgoing, Stop> {
        let signer = self.signer(&endpoint.suites).ok_or(Stop::Unsent(Unsent::Held))?;
        let (event_id, body, at) = (message.event_id, message.body, self.clock.now());
        let attempt = Attempt { event_id, url, body, at };
        let keys =
            SigningKeys { secrets: &endpoint.secrets, signer: &signer, issuer: &self.issuer };
        let written = sign(&attempt, &endpoint.suites, &keys)
            .map_err(|error| error.to_string())
            .and_then(|signed| write(endpoint, url, message, signed).map_err(|e| e.to_string()));
        written.map_err(|error| {
            tracing::error!(
                endpoint.id = endpoint.id.as_str(),
                error,
                "failed to build a webhook request"
            );
            Stop::Failed(ErrorClass::Address)
        })
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
    let replay = message.replay_id.map(|id| HeaderValue::from_str(id)).transpose()?;
    let all = own.chain([host]).chain(signed).chain(replay.map(|id| (REPLAY, id)));
    all.for_each(|(name, value)| drop(headers.insert(name, value)));
    Ok(request)
}

/// Why an attempt has no response.
enum Stop {
    Failed(ErrorClass),
    Unsent(Unsent),
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
                // The duration of a failed address look-up would reveal details of the internal
                // network.
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

/// Runs the attempt of one claimed delivery and measures its duration.
pub(super) async fn run(shared: Arc<Shared>, job: Arc<Job>) -> AttemptResult {
    let begun = Instant::now();
    let result = shared.attempt(&job).await;
    let took = begun.elapsed();
    count_held("delivery", took);
    AttemptResult { job, result, took }
}
