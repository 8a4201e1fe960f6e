//! Threads for long computations: simulations, dry runs, validation, explanations, replays.
//!
//! Callers request such work and determine its cost. It runs on a few threads of its own at a lower
//! priority, so that decisions do not wait for it; tenants take turns; the queue is bounded, for each
//! tenant and in all; and a job checks its [`Turn`] now and then, so that none continues for a caller who
//! has left.

mod queue;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use queue::{Job, Next, Queue};

/// Enough for `decision/stack.rs`, so that it allocates no further stack.
const STACK: usize = 32 * 1024 * 1024;
/// A tenth of the processor time of a thread at the usual priority, when both compete.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;
/// The time after which a job with more work yields to others.
const SLICE: Duration = Duration::from_millis(200);

/// Limits of running and waiting jobs.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub threads: usize,
    /// Running jobs of one tenant.
    pub running: usize,
    /// Waiting jobs of one tenant.
    pub waiting: usize,
    /// Waiting jobs of all tenants.
    pub waiting_in_all: usize,
    /// From the request to the result.
    pub longest: Duration,
}

impl Default for Limits {
    /// Half as many threads as processors, at least two; one tenant never has all of them.
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let threads = (processors / 2).max(2);
        Self {
            threads,
            running: threads - 1,
            waiting: 16,
            waiting_in_all: 128,
            // Before the call's own deadline, so that its caller learns why.
            longest: Duration::from_secs(9),
        }
    }
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("too many requests of this kind are waiting, of this tenant or in all")]
    Full,
    #[error("it takes too long for one response; ask for less at a time")]
    TooLong,
    #[error("the work failed")]
    Failed,
}

/// What a job may check.
pub struct Turn {
    cancellation: Cancellation,
    started: Instant,
}

impl Turn {
    /// Whether anyone still waits for the result. If not, stop.
    pub fn is_wanted(&self) -> bool {
        !self.cancellation.is_cancelled()
    }

    /// Whether the job should yield to others: return the rest, and run again.
    pub fn is_over(&self) -> bool {
        self.started.elapsed() >= SLICE
    }
}

/// Cancelled when the future that waits for the result is dropped, and at its deadline.
#[derive(Clone)]
struct Cancellation {
    left: Arc<AtomicBool>,
    until: Instant,
}

impl Cancellation {
    fn is_cancelled(&self) -> bool {
        self.left.load(Ordering::Relaxed) || Instant::now() >= self.until
    }
}

/// Cancels the job when the waiting future is dropped.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The threads. Cheap to clone; they end with the last handle.
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

    /// Runs `job` for the tenant, in its turn, and returns its result.
    ///
    /// # Errors
    /// If the queue is full, if it takes too long, or if the job panics.
    pub async fn run<T: Send + 'static>(
        &self,
        tenant_id: &str,
        job: impl FnOnce(&Turn) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.run_within(tenant_id, self.0.limits.longest, job).await
    }

    /// The same with another deadline.
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
            // A caller that has left costs nothing.
            if !own.is_cancelled() {
                let _ = to.send(job(&Turn { cancellation: own, started: Instant::now() }));
            }
        });
        if !self.0.shared.queue.lock().add(tenant_id, Job { cancellation, work }) {
            metrics::counter!("authority_compute_refused_total").increment(1);
            return Err(Error::Full);
        }
        self.0.shared.changed.notify_one();
        match tokio::time::timeout(longest, result).await {
            // A later result is incomplete: the job saw that nobody waited.
            Ok(Ok(result)) if Instant::now() < until => Ok(result),
            // The job ended without a result: it panicked, or came to its turn too late.
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
            tracing::error!(tenant_id = &*tenant_id, "a computation panicked");
        }
        shared.queue.lock().done(&tenant_id);
        // The tenant's next job may be for a thread that found none before.
        shared.changed.notify_all();
    }
}

/// Lowers this thread's priority, so that decisions come first.
fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS)
    {
        tracing::warn!(%error, "cannot lower the priority of a thread");
    }
}

#[cfg(test)]
mod tests;
