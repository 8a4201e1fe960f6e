//! Runs workers, restarts them, and stops them.

use std::{any::Any, fmt::Display, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::time::{sleep, timeout};
use tokio_util::{
    sync::{CancellationToken, WaitForCancellationFuture},
    task::TaskTracker,
};
use tracing::Instrument;

use super::{
    Body, Next, Worker,
    pace::{back_off, jittered},
    status::{Status, Statuses},
};

/// How long [`Supervisor::stop`] waits for runs under way.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs workers until the service stops. Clones share one state.
#[derive(Clone, Default)]
pub struct Supervisor {
    tracker: TaskTracker,
    /// Cancelled when the service begins to stop.
    shutdown: CancellationToken,
    /// Cancelled when no call is in progress any more.
    drained: CancellationToken,
    statuses: Statuses,
}

impl Supervisor {
    /// Its workers end when the token is cancelled; those that outlast calls, by [`Supervisor::stop`].
    pub fn new(shutdown: CancellationToken) -> Self {
        Self { shutdown, ..Self::default() }
    }

    /// Cancelled when the service begins to stop.
    pub fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }

    pub fn statuses(&self) -> Statuses {
        self.statuses.clone()
    }

    pub fn run(&self, workers: impl IntoIterator<Item = Worker>) {
        for worker in workers {
            let stop = if worker.outlasts_calls { &self.drained } else { &self.shutdown };
            let context = Context { stop: stop.clone(), status: self.statuses.add(&worker) };
            self.tracker.spawn(supervise(worker, context));
        }
    }

    /// Tells all workers to end, and does not wait for them.
    pub fn cancel(&self) {
        self.shutdown.cancel();
        self.drained.cancel();
    }

    /// Ends all workers and waits 5 seconds at most for their current runs. Returns the names of those that
    /// still run: they end with the runtime.
    pub async fn stop(&self) -> Vec<&'static str> {
        self.cancel();
        self.tracker.close();
        if timeout(PATIENCE, self.tracker.wait()).await.is_ok() {
            return Vec::new();
        }
        let workers = self.statuses.running();
        tracing::warn!(?workers, "background work did not end in time");
        workers
    }
}

/// The argument of an endless worker.
#[derive(Clone)]
pub struct Context {
    stop: CancellationToken,
    status: Arc<Status>,
}

impl Context {
    /// Resolves when the worker is to end.
    pub fn stopped(&self) -> WaitForCancellationFuture<'_> {
        self.stop.cancelled()
    }

    /// Notes a success outside of a round.
    pub fn succeeded(&self) {
        self.status.note_success();
    }

    /// One round of the work, in a span of its own. Its outcome is counted.
    pub async fn round<T, E: Display>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let name = self.status.name();
        let span = tracing::info_span!("worker", name, outcome = tracing::field::Empty);
        let done = AssertUnwindSafe(work).catch_unwind().instrument(span.clone()).await;
        match done {
            Ok(Ok(done)) => {
                span.record("outcome", "ok");
                self.status.note_success();
                Ok(done)
            }
            Ok(Err(error)) => {
                span.record("outcome", "failed");
                span.in_scope(|| self.status.note_failure(&error));
                Err(error)
            }
            // Counted by `run`.
            Err(panic) => {
                span.record("outcome", "panicked");
                std::panic::resume_unwind(panic)
            }
        }
    }
}

async fn supervise(mut worker: Worker, context: Context) {
    let status = &context.status;
    while !context.stop.is_cancelled() {
        status.note_running();
        let pause = match run(&mut worker.body, &context).await {
            Ok(Next::Usual) => worker.every.unwrap_or_default(),
            Ok(Next::After(pause)) => pause,
            Err(Failed) => back_off(status.failures(), worker.every),
        };
        tokio::select! {
            biased;
            () = context.stopped() => {}
            () = sleep(jittered(pause)) => {}
        }
    }
    status.note_stopped();
}

/// A run failed; it is noted and counted.
struct Failed;

async fn run(body: &mut Body, context: &Context) -> Result<Next, Failed> {
    let status = &context.status;
    match body {
        Body::Tick(tick) => {
            let ticked = AssertUnwindSafe(async { context.round(tick()).await }).catch_unwind();
            match ticked.await {
                Ok(ticked) => ticked.map_err(|_| Failed), // noted by the round
                Err(panic) => {
                    status.note_panic(&message(panic));
                    Err(Failed)
                }
            }
        }
        Body::Loop(body) => {
            let ended = AssertUnwindSafe(async { body(context.clone()).await }).catch_unwind();
            match ended.await {
                Ok(Ok(())) if context.stop.is_cancelled() => return Ok(Next::Usual),
                Ok(Ok(())) => status.note_failure(&"it ended while the service runs"),
                Ok(Err(error)) => status.note_failure(&error),
                Err(panic) => status.note_panic(&message(panic)),
            }
            status.note_down();
            Err(Failed)
        }
    }
}

fn message(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic.downcast_ref::<&str>().unwrap_or(&"no message").to_string(),
    }
}
