//! Sends pushes.

use std::{sync::Arc, time::Duration};

use authority_keys::{self as keys, Keys};
use authority_process::{
    clock::Clock,
    worker::{Context, Worker},
};
use authority_store::{self as store, Db, Scope, Store};
use authority_webhook::{destination::EndpointUrl, retry::Answer};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};
use tokio::{sync::Semaphore, task::JoinSet, time::sleep};

use super::{
    due::{self, Due, Ending},
    vapid::Vapid,
    waiting::{TooMany, Waiting, WaitingPush},
};
use crate::delivery::Deliveries;

/// How often the worker looks for new notifications.
const POLL: Duration = Duration::from_secs(1);
/// The most concurrent requests of this node.
const IN_FLIGHT: usize = 64;
/// The most concurrent transactions, because other work needs the database as well.
const TRANSACTIONS: usize = 2;
/// The least delay before each retry of a push.
const BACK_OFF: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(30)];
/// The longest wait that a push service can request.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// How long the push service keeps a push for an offline browser, in seconds (RFC 8030, 5.2).
const TTL: (HeaderName, HeaderValue) =
    (HeaderName::from_static("ttl"), HeaderValue::from_static("14400"));
/// The header with the urgency. The push service wakes a sleeping device only for urgent pushes
/// (RFC 8030, 5.3).
const URGENCY: HeaderName = HeaderName::from_static("urgency");
/// The header with the topic. A push replaces an undelivered push with the same topic (RFC 8030,
/// 5.4).
const TOPIC: HeaderName = HeaderName::from_static("topic");
/// The number of bytes in a topic. Base64url makes 32 characters of them.
const TOPIC_BYTES: usize = 24;
/// The kind of notification that is pushed with high urgency.
const URGENT: &str = "approval.opened";

/// The dependencies of a [`Sender`].
pub(super) struct Parts {
    pub(super) clock: Clock,
    pub(super) store: Store,
    pub(super) keys: Keys,
    pub(super) deliveries: Deliveries,
    pub(super) vapid: Arc<Vapid>,
}

/// Sends the pushes that this node took up.
pub(super) struct Sender {
    parts: Parts,
    in_flight: Semaphore,
    transactions: Semaphore,
    waiting: Arc<Waiting>,
}

/// Why a push could not be sent.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error("its URL is refused: {0}")]
    Url(#[from] authority_webhook::destination::UrlError),
    #[error(transparent)]
    Vapid(#[from] super::vapid::Error),
}

pub(super) fn worker(sender: Sender) -> Worker {
    let sender = Arc::new(sender);
    let worker = Worker::endless("web_push", move |context| {
        let sender = Arc::clone(&sender);
        async move {
            sender.run(&context).await;
            Ok::<_, store::Error>(())
        }
    });
    worker.with_rounds(POLL)
}

impl Sender {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            parts,
            in_flight: Semaphore::new(IN_FLIGHT),
            transactions: Semaphore::new(TRANSACTIONS),
            waiting: Arc::default(),
        }
    }

    /// Runs until the service stops. Pushes that are still waiting then are lost.
    async fn run(self: &Arc<Self>, context: &Context) {
        let mut pushes = JoinSet::new();
        loop {
            // A failed round is retried at the next poll.
            let due = context.round(self.take_up()).await.unwrap_or_default();
            for place in due.into_iter().filter_map(|due| self.place(due)) {
                pushes.spawn(Arc::clone(self).push(place));
            }
            tokio::select! {
                () = context.stopped() => return,
                () = sleep(POLL) => {}
            }
            while let Some(ended) = pushes.try_join_next() {
                if let Err(error) = ended {
                    tracing::error!(%error, "caught a panic of a push");
                }
            }
        }
    }

    async fn take_up(&self) -> Result<Vec<Due>, store::Error> {
        let take_up = async |db: &mut Db| Ok::<_, store::Error>(due::take_up(db).await?);
        self.parts.store.write_tx(&Scope::service(), take_up).await
    }

    /// Adds the push, unless an equal push or too many pushes wait.
    fn place(&self, due: Due) -> Option<WaitingPush> {
        self.waiting.place(due).unwrap_or_else(|TooMany| {
            count("dropped");
            None
        })
    }

    async fn push(self: Arc<Self>, place: WaitingPush) {
        let ending = self.send(&place).await;
        if ending == Ending::Unsent {
            return;
        }
        let id = place.due.subscription_id.clone();
        // The semaphore is never closed.
        let Ok(_permit) = self.transactions.acquire().await else { return };
        let recorded = self.parts.store.write_tx(&Scope::service(), async move |db: &mut Db| {
            Ok::<_, store::Error>(due::record(db, &id, ending).await?)
        });
        if let Err(error) = recorded.await {
            tracing::warn!(%error, "failed to record the result of a push");
        }
    }

    /// Sends the push. Retries it if the push service responds with 429 or 5xx.
    async fn send(&self, place: &WaitingPush) -> Ending {
        let mut back_off = BACK_OFF.into_iter();
        loop {
            let answer = match self.attempt(place).await {
                Ok(Some(answer)) => answer,
                Ok(None) => return Ending::Unsent,
                Err(error) => {
                    let subscription_id = &place.due.subscription_id;
                    tracing::warn!(
                        %error,
                        subscription.id = subscription_id,
                        "failed to send a push"
                    );
                    return Ending::Unsent;
                }
            };
            match answer.status {
                _ if answer.succeeded() => return Ending::Accepted,
                Some(404 | 410) => return Ending::Gone,
                Some(429 | 500..=599) => {}
                _ => return Ending::Failed,
            }
            let Some(wait) = back_off.next() else { return Ending::Failed };
            let asked = answer.retry_after.unwrap_or_default().min(LONGEST_WAIT);
            // A random factor spreads the retries.
            sleep(wait.max(asked).mul_f64(1.0 + fastrand::f64() / 5.0)).await;
        }
    }

    /// Sends one request. Returns `None` if the push may no longer be sent.
    ///
    /// If there was no response, the answer has no status.
    async fn attempt(&self, place: &WaitingPush) -> Result<Option<Answer>, Error> {
        // The tenant's semaphore is acquired first. A push that waits for other pushes of its
        // tenant then uses none of the node's requests. Neither semaphore is ever closed.
        let Ok(_own) = place.in_flight.acquire().await else { return Ok(None) };
        let Ok(_permit) = self.in_flight.acquire().await else { return Ok(None) };
        let due = &place.due;
        let Some(url) = self.url(due).await? else { return Ok(None) };
        let headers = self.headers(&url, &due.kind)?;
        let answer = match self.parts.deliveries.push(&url, headers).await {
            Ok(answer) => {
                count(if answer.succeeded() { "ok" } else { "status" });
                answer
            }
            Err(class) => {
                count(class.as_str());
                Answer { status: None, retry_after: None }
            }
        };
        Ok(Some(answer))
    }

    /// Reads the subscription's URL right before sending.
    ///
    /// Returns `None` if the subscription was deleted or may not be notified now.
    async fn url(&self, due: &Due) -> Result<Option<EndpointUrl>, Error> {
        let Ok(_permit) = self.transactions.acquire().await else { return Ok(None) };
        let asked = due.clone();
        let find =
            async move |db: &mut Db| Ok::<_, store::Error>(due::sealed_endpoint(db, &asked).await?);
        let sealed = self.parts.store.read_tx(&Scope::service(), find).await?;
        let Some(sealed) = sealed else { return Ok(None) };
        let url = self.parts.keys.open_push_endpoint(&due.subscription_id, &sealed)?;
        Ok(Some(self.parts.deliveries.push_url(&url)?))
    }

    fn headers(&self, url: &EndpointUrl, kind: &str) -> Result<HeaderMap, Error> {
        let authorization = self.parts.vapid.authorization(url, self.parts.clock.now())?;
        let urgency = HeaderValue::from_static(if kind == URGENT { "high" } else { "normal" });
        let all = [(AUTHORIZATION, authorization), (URGENCY, urgency), TTL];
        Ok(all.into_iter().chain(self.topic(kind).map(|topic| (TOPIC, topic))).collect())
    }

    /// Returns the topic of a kind of notification. It is a keyed digest: the push service learns
    /// which pushes are of the same kind, but not the kind itself.
    fn topic(&self, kind: &str) -> Option<HeaderValue> {
        let code = self.parts.keys.mac("push-topic", kind.as_bytes());
        let topic = URL_SAFE_NO_PAD.encode(code.get(..TOPIC_BYTES)?);
        HeaderValue::from_str(&topic).ok()
    }
}

fn count(class: &'static str) {
    metrics::counter!("authority_push_attempts_total", "class" => class).increment(1);
}
