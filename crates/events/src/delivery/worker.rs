//! Sends due deliveries. The loop starts the next attempt as soon as there is a place for it; claiming and recording
//! run beside it, each in one transaction at a time that takes what has come up during the last.

use std::{collections::HashMap, sync::Arc, time::Duration};

use authority_core::{
    store::{self, Scope},
    worker::{Context, Worker},
};
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep_until, timeout},
};

use super::{
    Shared,
    attempt::{self, Done, Ending},
    beside::Beside,
    check::Unsent,
    claim::{self, Claims},
    job::Job,
    lost,
    queue::Queue,
    record::{self, Ended, Recorded},
    turns::Turns,
};

/// How often due deliveries are looked for without having been woken.
const POLL: Duration = Duration::from_millis(500);
/// How often the worker records which endpoints are at their own limits.
const NOTED: Duration = Duration::from_secs(1);
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

/// What was to be recorded, and what came of it.
type Recording = (Vec<Arc<Ended>>, Result<Recorded, store::Error>);

/// What this node sends.
struct Sending {
    shared: Arc<Shared>,
    queue: Queue,
    attempts: JoinSet<Done>,
    jobs: HashMap<Id, Arc<Job>>,
    claims: Beside<(Turns, Result<Claims, store::Error>)>,
    /// Of claims.
    turns: Turns,
    claim_at: Instant,
    /// Whether more could be claimed when the queue runs low.
    may_have_more: bool,
    /// Not recorded yet.
    ended: Vec<Arc<Ended>>,
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
            // What fails is tried again at the next poll.
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

    /// Runs before attempts start: a place that an endpoint holds only for a moment doesn't count.
    fn note_limits(&mut self, now: Instant) {
        if now >= self.note_at {
            self.note_at = now + NOTED;
            self.shared.limited.note(self.queue.at_limits(now), now);
        }
    }

    /// Starts attempts for the free places.
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

    /// When there is something to do without an event.
    fn next(&self, now: Instant) -> Instant {
        let paced = self.queue.paced_until(now);
        let claim = self.claims.is_idle().then_some(self.claim_at);
        let record = (self.records.is_idle() && !self.ended.is_empty()).then_some(self.record_at);
        [paced, claim, record].into_iter().flatten().fold(now + POLL, Instant::min)
    }

    /// Looks for due deliveries, if it is time to.
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

    /// Takes up an attempt that ended, and all others that did.
    fn note_all(&mut self, first: Result<(Id, Done), JoinError>) {
        self.note(first);
        while let Some(done) = self.attempts.try_join_next_with_id() {
            self.note(done);
        }
    }

    fn note(&mut self, done: Result<(Id, Done), JoinError>) {
        let (id, Done { job, result, took }) = match done {
            Ok(done) => done,
            // It panicked; others may attempt it when its lease has ended.
            Err(error) => {
                tracing::error!(%error, "an attempt crashed");
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
        self.ended.push(Arc::new(Ended { job, ending, stops }));
    }

    /// Gives back what waited.
    fn release(&mut self, jobs: impl IntoIterator<Item = Arc<Job>>) {
        jobs.into_iter().for_each(|job| self.end(job, Ending::Released, false));
    }

    /// Records what ended, if it is time to.
    fn record(&mut self, now: Instant) {
        if self.records.is_idle() && !self.ended.is_empty() && now >= self.record_at {
            self.records.start(write(Arc::clone(&self.shared), std::mem::take(&mut self.ended)));
        }
    }

    fn recorded(
        &mut self,
        mut ended: Vec<Arc<Ended>>,
        recorded: Result<Recorded, store::Error>,
    ) -> Result<(), store::Error> {
        let Recorded { disabled: _, held, lost } = match recorded {
            Ok(recorded) => recorded,
            Err(error) => {
                // Again at the next poll; the leases say until when that has a point.
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

    /// Releases what waits, lets the attempts in flight end, and releases those that do not.
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
                tracing::warn!(%error, "ended attempts are not recorded; they will be repeated");
            }
        }
    }

    /// Until nothing is under way and all is recorded.
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
                    // By their rate limit some may have gone back to wait.
                    let waiting = self.queue.release_all();
                    self.release(waiting);
                }
            }
        }
    }
}

/// Records what ended, and disables the endpoints of which that is the consequence.
async fn write(
    shared: Arc<Shared>,
    ended: Vec<Arc<Ended>>,
) -> (Vec<Arc<Ended>>, Result<Recorded, store::Error>) {
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
        // The next failure disables them.
        if let Err(error) = done.await {
            tracing::warn!(%error, "endpoints are not disabled");
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
            tracing::debug!("webhooks wait: this node's clock is not the database's");
        }
        is_near
    }
}
