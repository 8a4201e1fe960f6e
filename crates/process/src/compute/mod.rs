//! Threads for long computations: simulations, dry runs, validation, explanations, replays.
//!
//! Callers request these computations and determine their cost. They run on a few dedicated threads
//! at a lower priority than decisions. Tenants take turns. The queue is bounded, per tenant and in
//! total. A job checks its [`Turn`] regularly and stops if its caller has left.

mod cancellation;
mod error;
mod limits;
mod queue;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use cancellation::{CancelOnDrop, Cancellation};
pub use error::Error;
pub use limits::Limits;
use queue::{Job, Next, Queue};

/// Large enough for `decision/policy/stack.rs`, which then allocates no further stack.
const STACK: usize = 32 * 1024 * 1024;
/// The niceness at which a thread gets a tenth of the processor time of a normal thread when both
/// compete.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;
/// The time after which a job with more work yields to other jobs.
const SLICE: Duration = Duration::from_millis(200);

/// Lets a running job check whether to stop or yield.
pub struct Turn {
    cancellation: Cancellation,
    started: Instant,
}

impl Turn {
    /// Whether a caller still waits for the result. If not, the job should stop.
    pub fn is_wanted(&self) -> bool {
        !self.cancellation.is_cancelled()
    }

    /// Whether the job should yield: return its partial result and run again.
    pub fn is_over(&self) -> bool {
        self.started.elapsed() >= SLICE
    }
}

/// The thread pool. It is cheap to clone. The threads end when the last clone is dropped.
#[derive(Clone)]
pub struct ComputePool(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    limits: Limits,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.queue.lock().close();
        self.shared.changed.notify_all();
    }
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl ComputePool {
    /// Starts the threads.
    ///
    /// # Errors
    /// If the system cannot create a thread.
    pub fn start(limits: Limits) -> std::io::Result<Self> {
        let queue = Mutex::new(Queue::new(limits));
        let shared = Arc::new(Shared { queue, changed: Condvar::new() });
        for number in 0..limits.threads {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("compute-{number}")).stack_size(STACK);
            thread.spawn(move || work(&shared))?;
        }
        Ok(Self(Arc::new(Handle { shared, limits })))
    }

    /// Runs `job` when it is the tenant's turn, and returns its result.
    ///
    /// # Errors
    /// If the queue is full, if waiting and running take too long, or if the job panics.
    pub async fn run<T: Send + 'static>(
        &self,
        tenant_id: &str,
        job: impl FnOnce(&Turn) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.run_within(tenant_id, self.0.limits.longest, job).await
    }

    /// Does the same as [`Self::run`], with another deadline.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn run_within<T: Send + 'static>(
        &self,
        tenant_id: &str,
        longest: Duration,
        job: impl FnOnce(&Turn) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (to, result) = oneshot::channel();
        let waiting = CancelOnDrop(Arc::default());
        let until = Instant::now() + longest;
        let cancellation = Cancellation { left: Arc::clone(&waiting.0), until };
        let own = cancellation.clone();
        let work = Box::new(move || {
            // Skips the work if the caller has left.
            if !own.is_cancelled() {
                let _ = to.send(job(&Turn { cancellation: own, started: Instant::now() }));
            }
        });
        self.0.shared.queue.lock().add(tenant_id, Job { cancellation, work }).inspect_err(
            |_| {
                metrics::counter!("authority_compute_refused_total").increment(1);
            },
        )?;
        self.0.shared.changed.notify_one();
        match tokio::time::timeout(longest, result).await {
            // A result after the deadline may be incomplete: the job may have stopped because it
            // was cancelled.
            Ok(Ok(result)) if Instant::now() < until => Ok(result),
            // The job ended without a result: it panicked, or its turn came too late.
            Ok(Err(_)) if Instant::now() < until => Err(Error::Failed),
            _ => Err(Error::TooLong),
        }
    }
}

fn work(shared: &Shared) {
    give_way();
    loop {
        let mut queue = shared.queue.lock();
        let (tenant_id, job) = loop {
            match queue.next() {
                Next::Job(tenant_id, job) => break (tenant_id, job),
                Next::Nothing => shared.changed.wait(&mut queue),
                Next::Closed => return,
            }
        };
        drop(queue);
        if catch_unwind(AssertUnwindSafe(job.work)).is_err() {
            tracing::error!(tenant.id = &*tenant_id, "caught a panic of a computation");
        }
        shared.queue.lock().done(&tenant_id);
        // The tenant now has one running job less. A thread that found no job to run may run the
        // tenant's next job.
        shared.changed.notify_all();
    }
}

/// Lowers this thread's priority, in favour of decisions.
fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS)
    {
        tracing::warn!(%error, "failed to lower the priority of a thread");
    }
}

#[cfg(test)]
mod tests;
