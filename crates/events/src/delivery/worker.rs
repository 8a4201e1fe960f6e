//! Sends due deliveries: records what ended, claims what may go out, and sends it beside the others.

use std::{collections::HashMap, sync::Arc, time::Duration};

use authority_core::{
    store::{self, Scope},
    worker::{Context, Worker},
};
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::{sleep, timeout},
};

use super::{
    Shared, attempt,
    attempt::{Ended, Ending},
    claim::{self, Job},
    lost, record,
    turns::{InFlight, Turns},
};

/// How often due deliveries are looked for without having been woken.
const POLL: Duration = Duration::from_millis(500);
/// What ends within this time is recorded together.
const LINGER: Duration = Duration::from_millis(10);
/// When the service stops: for what is in flight. The rest is released.
const DRAIN: Duration = Duration::from_secs(3);
/// A node whose clock is further from the database's signs nothing.
const CLOCK: Duration = Duration::from_secs(30);

pub(super) fn worker(shared: Arc<Shared>) -> Worker {
    let worker = Worker::endless("webhook_deliveries", move |context| {
        let sending = Sending::new(Arc::clone(&shared));
        async move {
            sending.run(&context).await;
            Ok::<_, store::Error>(())
        }
    });
    worker.with_rounds(POLL)
}

/// What this node sends.
struct Sending {
    shared: Arc<Shared>,
    turns: Turns,
    in_flight: InFlight,
    attempts: JoinSet<Ended>,
    jobs: HashMap<Id, Arc<Job>>,
    /// Not recorded yet.
    ended: Vec<Ended>,
}

impl Sending {
    fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            turns: Turns::default(),
            in_flight: InFlight::default(),
            attempts: JoinSet::new(),
            jobs: HashMap::new(),
            ended: Vec::new(),
        }
    }

    async fn run(mut self, context: &Context) {
        let shared = Arc::clone(&self.shared);
        loop {
            // A failed round is tried again at the next poll.
            let pause = context.round(self.round()).await.unwrap_or(POLL);
            tokio::select! {
                biased;
                () = context.stopped() => break,
                () = self.some_ended() => {}
                () = shared.wake.notified() => {}
                () = sleep(pause) => {}
            }
        }
        self.finish().await;
    }

    /// One round; the pause until the next.
    async fn round(&mut self) -> Result<Duration, store::Error> {
        self.record().await?;
        if self.in_flight.is_full() || !self.shared.is_on_time() {
            return Ok(POLL);
        }
        Ok(self.start().await?.map_or(POLL, |next| next.clamp(LINGER, POLL)))
    }

    /// Waits until an attempt has ended, and a little for others.
    async fn some_ended(&mut self) {
        match self.attempts.join_next_with_id().await {
            Some(ended) => self.note(ended),
            None => std::future::pending().await,
        }
        sleep(LINGER).await;
    }

    fn note(&mut self, ended: Result<(Id, Ended), JoinError>) {
        match ended {
            Ok((id, ended)) => {
                self.jobs.remove(&id);
                self.ended.push(ended);
            }
            // It panicked; others may attempt it when its lease has ended.
            Err(error) => {
                tracing::error!(%error, "an attempt crashed");
                if let Some(job) = self.jobs.remove(&error.id()) {
                    self.in_flight.remove(&job.place);
                }
            }
        }
    }

    /// Records what ended. Its places are free after that, so that the endpoint's breaker is up to date.
    async fn record(&mut self) -> Result<(), store::Error> {
        while let Some(ended) = self.attempts.try_join_next_with_id() {
            self.note(ended);
        }
        if self.ended.is_empty() {
            return Ok(());
        }
        let ended = Arc::new(std::mem::take(&mut self.ended));
        let (shared, written) = (Arc::clone(&self.shared), Arc::clone(&ended));
        let recorded = shared
            .store
            .write_tx(&Scope::service(), async move |db| {
                Ok::<_, store::Error>(record::record(db, &written).await?)
            })
            .await;
        match recorded {
            Ok(recorded) => {
                for (job, ending) in ended.iter() {
                    self.in_flight.remove(&job.place);
                    count(ending);
                }
                for (endpoint_id, events) in recorded.lost {
                    lost::report(&endpoint_id, events);
                }
                self.disable(recorded.disabled).await
            }
            Err(error) => {
                // Again in the next round; the leases say until when that has a point.
                self.ended = Arc::into_inner(ended).unwrap_or_default();
                Err(error)
            }
        }
    }

    async fn disable(&self, disabled: Vec<record::Disabled>) -> Result<(), store::Error> {
        if disabled.is_empty() {
            return Ok(());
        }
        let done = self.shared.store.write_tx(&Scope::service(), async move |db| {
            Ok::<_, store::Error>(record::disable(db, disabled).await?)
        });
        done.await
    }

    /// Claims deliveries for the free places, and starts their attempts. Returns when a rate limit permits
    /// more.
    async fn start(&mut self) -> Result<Option<Duration>, store::Error> {
        let shared = Arc::clone(&self.shared);
        let candidates = shared.store.read_tx(&Scope::service(), {
            let shared = Arc::clone(&shared);
            async move |db| {
                let has_signer = shared.keys.webhook_signer().is_some();
                Ok::<_, store::Error>(claim::candidates(db, &shared.rules, has_signer).await?)
            }
        });
        let (mut candidates, next) = candidates.await?;
        let shares = self.turns.divide(&mut candidates, &self.in_flight);
        if shares.is_empty() {
            return Ok(next);
        }
        let claimed = shared.store.write_tx(&Scope::service(), {
            let shared = Arc::clone(&shared);
            async move |db| {
                let claimed = claim::claim(db, &shared.keys, &shared.rules, &shares).await?;
                Ok::<_, store::Error>(claimed)
            }
        });
        for job in claimed.await? {
            self.in_flight.add(&job.place);
            let job = Arc::new(job);
            let attempt = attempt::run(Arc::clone(&shared), Arc::clone(&job));
            self.jobs.insert(self.attempts.spawn(attempt).id(), job);
        }
        Ok(next)
    }

    /// Lets the attempts in flight end, and releases those that do not.
    async fn finish(mut self) {
        let drained = async {
            while let Some(ended) = self.attempts.join_next_with_id().await {
                self.note(ended);
            }
        };
        if timeout(DRAIN, drained).await.is_err() {
            self.attempts.abort_all();
        }
        self.ended.extend(self.jobs.drain().map(|(_, job)| (job, Ending::Unspent)));
        self.attempts.detach_all();
        if let Err(error) = self.record().await {
            tracing::warn!(%error, "ended attempts are not recorded; they will be repeated");
        }
    }
}

fn count(ending: &Ending) {
    let class = match ending {
        Ending::Attempted(outcome) => outcome.class.map_or("ok", |class| class.as_str()),
        Ending::Unspent => "unspent",
        Ending::Expired => return,
    };
    metrics::counter!("authority_webhook_attempts_total", "class" => class).increment(1);
}

impl Shared {
    fn is_on_time(&self) -> bool {
        let is_near = self.graph.clock_distance().is_some_and(|distance| distance < CLOCK);
        if !is_near {
            tracing::debug!("webhooks wait: this node's clock is not the database's");
        }
        is_near
    }
}
