//! Sends due deliveries.
//!
//! The loop starts the next attempt as soon as the limits on running attempts permit it. Claiming
//! and recording run in the background, next to the attempts. Each uses one transaction at a time.
//! A transaction handles everything that has accumulated during the previous one.

use std::{collections::HashMap, sync::Arc, time::Duration};

use authority_process::worker::{Context, Worker};
use authority_store::{self as store, Scope};
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep_until, timeout},
};

use super::{
    attempt::{self, AttemptResult, Ending},
    beside::Beside,
    check::Unsent,
    claim::{self, Claims},
    job::Job,
    lost,
    queue::Queue,
    record::{self, FinishedDelivery, Recorded},
    shared::Shared,
    turns::Turns,
};

/// How often the worker looks for due deliveries without a wake-up.
const POLL: Duration = Duration::from_millis(500);
/// How often the worker records which endpoints are at their own limits.
const NOTED: Duration = Duration::from_secs(1);
/// How long running attempts may take when the service stops. Waiting deliveries are released at
/// once.
const DRAIN: Duration = Duration::from_secs(3);
/// The largest difference from the database's clock at which a node still signs requests.
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

/// The results of attempts, and whether recording them succeeded.
type Recording = (Vec<Arc<FinishedDelivery>>, Result<Recorded, store::Error>);

/// The state of the worker's loop.
struct Sending {
    shared: Arc<Shared>,
    queue: Queue,
    attempts: JoinSet<AttemptResult>,
    jobs: HashMap<Id, Arc<Job>>,
    claims: Beside<(Turns, Result<Claims, store::Error>)>,
    /// The turns for claiming; `queue` has its own for sending.
    turns: Turns,
    claim_at: Instant,
    /// Whether another claim may find deliveries when the queue runs low.
    may_have_more: bool,
    /// Results that are not recorded yet.
    ended: Vec<Arc<FinishedDelivery>>,
    records: Beside<Recording>,
    record_at: Instant,
    note_at: Instant,
}

impl Sending {
    fn new(shared: Arc<Shared>) -> Self {
        let now = Instant::now();
        Self {
            shared,
            queue: Queue::new(),
            attempts: JoinSet::new(),
            jobs: HashMap::new(),
            claims: Beside::idle(),
            turns: Turns::default(),
            claim_at: now,
            may_have_more: false,
            ended: Vec::new(),
            records: Beside::idle(),
            record_at: now,
            note_at: now,
        }
    }

    async fn run(mut self, context: &Context) {
        let shared = Arc::clone(&self.shared);
        loop {
            let now = Instant::now();
            self.note_limits(now);
            self.start(now);
            self.record(now);
            self.claim(now);
            let next = self.next(now);
            // A failed step is retried at the next poll.
            tokio::select! {
                biased;
                () = context.stopped() => break,
                (ended, recorded) = self.records.done() => {
                    let _ = context.round(async { self.recorded(ended, recorded) }).await;
                }
                (turns, claimed) = self.claims.done() => {
                    self.turns = turns;
                    let _ = context.round(async { self.claimed(claimed) }).await;
                }
                Some(done) = self.attempts.join_next_with_id() => self.note_all(done),
                () = shared.wake.notified() => {
                    self.claim_at = Instant::now();
                    self.may_have_more = true;
                }
                () = sleep_until(next) => {}
            }
        }
        self.finish().await;
    }

    /// Records the endpoints at their limits. Call it before attempts start: limits that were
    /// reached only a moment ago don't count.
    fn note_limits(&mut self, now: Instant) {
        if now >= self.note_at {
            self.note_at = now + NOTED;
            self.shared.limited.note(self.queue.at_limits(now), now);
        }
    }

    /// Starts attempts as far as the limits permit.
    fn start(&mut self, now: Instant) {
        let overdue = self.queue.overdue(now);
        self.release(overdue);
        if !self.shared.is_on_time() {
            return;
        }
        while let Some(job) = self.queue.next(now) {
            let attempt = attempt::run(Arc::clone(&self.shared), Arc::clone(&job));
            self.jobs.insert(self.attempts.spawn(attempt).id(), job);
        }
    }

    /// Returns the time at which the loop has work to do even without an event.
    fn next(&self, now: Instant) -> Instant {
        let paced = self.queue.paced_until(now);
        let claim = self.claims.is_idle().then_some(self.claim_at);
        let record = (self.records.is_idle() && !self.ended.is_empty()).then_some(self.record_at);
        [paced, claim, record].into_iter().flatten().fold(now + POLL, Instant::min)
    }

    /// Claims due deliveries, if it is time to.
    fn claim(&mut self, now: Instant) {
        let is_hungry = || self.may_have_more && self.queue.is_hungry();
        if !self.claims.is_idle() || (now < self.claim_at && !is_hungry()) {
            return;
        }
        self.claim_at = now + POLL;
        let (rooms, claimed) = (self.queue.rooms(), self.queue.claimed().clone());
        let (shared, turns) = (Arc::clone(&self.shared), std::mem::take(&mut self.turns));
        self.claims.start(claim::round(shared, turns, rooms, claimed));
    }

    fn claimed(&mut self, claimed: Result<Claims, store::Error>) -> Result<(), store::Error> {
        let Claims { jobs, more } = claimed.inspect_err(|_| {
            self.claim_at = Instant::now() + POLL;
            self.may_have_more = false;
        })?;
        self.may_have_more = !jobs.is_empty();
        let refused = self.queue.take(jobs, &more, Instant::now());
        self.release(refused);
        Ok(())
    }

    /// Handles an attempt that has ended, and all others that have ended in the meantime.
    fn note_all(&mut self, first: Result<(Id, AttemptResult), JoinError>) {
        self.note(first);
        while let Some(done) = self.attempts.try_join_next_with_id() {
            self.note(done);
        }
    }

    fn note(&mut self, done: Result<(Id, AttemptResult), JoinError>) {
        let (id, AttemptResult { job, result, took }) = match done {
            Ok(done) => done,
            // The attempt panicked. After its lease expires, any node may attempt the delivery
            // again.
            Err(error) => {
                tracing::error!(%error, "caught a panic of a delivery attempt");
                if let Some(job) = self.jobs.remove(&error.id()) {
                    self.queue.left(&job);
                    self.queue.recorded(&job, false);
                }
                return;
            }
        };
        self.jobs.remove(&id);
        let now = Instant::now();
        match result {
            Ok(ending) => {
                let stopped = self.queue.ended(&job, &ending, took, now);
                self.end(job, ending, stopped.is_some());
                self.release(stopped.unwrap_or_default());
            }
            Err(Unsent::Later(pause)) => {
                let refused = self.queue.put_back(job, pause, now);
                self.release(refused);
            }
            Err(Unsent::Changed) => {
                self.queue.left(&job);
                let waiting = self.queue.release(&job.place.endpoint_id);
                self.release([job]);
                self.release(waiting);
            }
            Err(Unsent::Held) => {
                self.queue.left(&job);
                let waiting = self.queue.release(&job.place.endpoint_id);
                self.end(job, Ending::Unspent, false);
                self.release(waiting);
            }
            Err(Unsent::Unknown) => {
                self.queue.left(&job);
                self.end(job, Ending::Unspent, false);
            }
        }
    }

    fn end(&mut self, job: Arc<Job>, ending: Ending, stops: bool) {
        self.ended.push(Arc::new(FinishedDelivery { job, ending, stops }));
    }

    /// Releases waiting deliveries. Any node may claim them at once.
    fn release(&mut self, jobs: impl IntoIterator<Item = Arc<Job>>) {
        jobs.into_iter().for_each(|job| self.end(job, Ending::Released, false));
    }

    /// Records results, if it is time to.
    fn record(&mut self, now: Instant) {
        if self.records.is_idle() && !self.ended.is_empty() && now >= self.record_at {
            self.records.start(write(Arc::clone(&self.shared), std::mem::take(&mut self.ended)));
        }
    }

    fn recorded(
        &mut self,
        mut ended: Vec<Arc<FinishedDelivery>>,
        recorded: Result<Recorded, store::Error>,
    ) -> Result<(), store::Error> {
        let Recorded { disabled: _, held, lost } = match recorded {
            Ok(recorded) => recorded,
            Err(error) => {
                // Recording is retried at the next poll. A retry after the leases have expired
                // records no results.
                self.record_at = Instant::now() + POLL;
                ended.append(&mut self.ended);
                self.ended = ended;
                return Err(error);
            }
        };
        for one in &ended {
            self.queue.recorded(&one.job, one.stops);
            count(&one.ending);
        }
        for endpoint_id in held {
            let waiting = self.queue.release(&endpoint_id);
            self.release(waiting);
        }
        for (endpoint_id, events) in lost {
            lost::report(&endpoint_id, events);
        }
        self.may_have_more = true;
        Ok(())
    }

    /// Stops the worker: releases waiting deliveries, lets running attempts end, and then releases
    /// the remaining deliveries.
    async fn finish(mut self) {
        let waiting = self.queue.release_all();
        self.release(waiting);
        if timeout(DRAIN, self.drain()).await.is_err() {
            self.attempts.abort_all();
        }
        while let Some(done) = self.attempts.try_join_next_with_id() {
            if done.is_ok() {
                self.note(done);
            }
        }
        let waiting = self.queue.release_all();
        self.release(waiting);
        for job in std::mem::take(&mut self.jobs).into_values() {
            self.end(job, Ending::Unspent, false);
        }
        self.attempts.detach_all();
        if !self.records.is_idle() {
            let (ended, recorded) = self.records.done().await;
            let _ = self.recorded(ended, recorded);
        }
        if !self.ended.is_empty() {
            let ended = std::mem::take(&mut self.ended);
            let (ended, recorded) = write(Arc::clone(&self.shared), ended).await;
            if let Err(error) = self.recorded(ended, recorded) {
                tracing::warn!(%error, "failed to record ended delivery attempts");
            }
        }
    }

    /// Waits until no work is running and all results are recorded.
    async fn drain(&mut self) {
        loop {
            self.record(Instant::now());
            if self.attempts.is_empty() && self.claims.is_idle() && self.records.is_idle() {
                return;
            }
            tokio::select! {
                (ended, recorded) = self.records.done() => drop(self.recorded(ended, recorded)),
                (_, claimed) = self.claims.done() => {
                    let _ = self.claimed(claimed);
                    let waiting = self.queue.release_all();
                    self.release(waiting);
                }
                Some(done) = self.attempts.join_next_with_id() => {
                    self.note_all(done);
                    // The rate limit may have put some of the deliveries back into the queue.
                    let waiting = self.queue.release_all();
                    self.release(waiting);
                }
            }
        }
    }
}

/// Records results, and disables endpoints where the results require it.
async fn write(
    shared: Arc<Shared>,
    ended: Vec<Arc<FinishedDelivery>>,
) -> (Vec<Arc<FinishedDelivery>>, Result<Recorded, store::Error>) {
    let written = ended.clone();
    let recorded = shared.store.write_tx(&Scope::service(), async move |db| {
        Ok::<_, store::Error>(record::record(db, &written).await?)
    });
    let mut recorded = recorded.await;
    if let Ok(Recorded { disabled, .. }) = &mut recorded
        && !disabled.is_empty()
    {
        let disabled = std::mem::take(disabled);
        let done = shared.store.write_tx(&Scope::service(), async move |db| {
            Ok::<_, store::Error>(record::disable(db, disabled).await?)
        });
        // If disabling fails, the endpoint's next failure disables it.
        if let Err(error) = done.await {
            tracing::warn!(%error, "failed to disable webhook endpoints");
        }
    }
    (ended, recorded)
}

fn count(ending: &Ending) {
    let class = match ending {
        Ending::Attempted(outcome) => outcome.class.map_or("ok", |class| class.as_str()),
        Ending::Unspent => "unspent",
        Ending::Released | Ending::Expired => return,
    };
    metrics::counter!("authority_webhook_attempts_total", "class" => class).increment(1);
}

impl Shared {
    pub(super) fn is_on_time(&self) -> bool {
        let is_near = self.graph.clock_distance().is_some_and(|distance| distance < CLOCK);
        if !is_near {
            tracing::debug!("paused deliveries, since the clocks of node and database differ");
        }
        is_near
    }
}
