//! Runs workers, restarts them, and stops them.

use std::{any::Any, fmt::Display, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::time::{sleep, timeout};
use tokio_util::{
    sync::{CancellationToken, WaitForCancellationFuture},
    task::TaskTracker,
};
use tracing::{Instrument, field};

use super::{
    Body, Next, Worker,
    pace::{back_off, jittered},
    status::{Status, Statuses},
};

/// How long [`Supervisor::stop`] waits for current runs.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs workers until the service stops. Clones share their state.
#[derive(Clone, Default)]
pub struct Supervisor {
    tracker: TaskTracker,
    /// Cancelled when the service begins to stop.
    shutdown: CancellationToken,
    /// Cancelled when all calls have ended.
    drained: CancellationToken,
    statuses: Statuses,
}

impl Supervisor {
    /// Creates a supervisor. Its workers end when the token is cancelled.
    ///
    /// Workers that outlast calls end with [`Supervisor::stop`].
    pub fn new(shutdown: CancellationToken) -> Self {
        Self { shutdown, ..Self::default() }
    }

    /// Returns the token that is cancelled when the service begins to stop.
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

    /// Signals all workers to end, without waiting for them.
    pub fn cancel(&self) {
        self.shutdown.cancel();
        self.drained.cancel();
    }

    /// Ends all workers. Waits at most 5 seconds for their current runs.
    ///
    /// Returns the names of the workers that still run. They end with the runtime.
    pub async fn stop(&self) -> Vec<&'static str> {
        self.cancel();
        self.tracker.close();
        if timeout(PATIENCE, self.tracker.wait()).await.is_ok() {
            return Vec::new();
        }
        let workers = self.statuses.running();
        tracing::warn!(?workers, "stopped before the background work ended");
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
    /// Resolves when the worker must end.
    pub fn stopped(&self) -> WaitForCancellationFuture<'_> {
        self.stop.cancelled()
    }

    /// Records a success outside of a round.
    pub fn succeeded(&self) {
        self.status.note_success();
    }

    /// Runs one round of the work in its own span, and counts its outcome.
    pub async fn round<T, E: Display>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let name = self.status.name();
        // A debug span, because the writer of decisions should usually run without spans.
        let span = tracing::debug_span!("worker", worker.name = name, outcome = field::Empty);
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
            // `run` counts the panic.
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

/// A run failed. The failure is already recorded and counted.
struct Failed;

async fn run(body: &mut Body, context: &Context) -> Result<Next, Failed> {
    let status = &context.status;
    match body {
        Body::Tick(tick) => {
            let ticked = AssertUnwindSafe(async { context.round(tick()).await }).catch_unwind();
            match ticked.await {
                Ok(ticked) => ticked.map_err(|_| Failed), // the round recorded the failure
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
