//! Runs background work next to a loop, one task at a time.

use std::panic::resume_unwind;

use tokio::task::{JoinError, JoinHandle};

pub(super) struct Beside<T>(Option<JoinHandle<T>>);

impl<T: Send + 'static> Beside<T> {
    pub(super) fn idle() -> Self {
        Self(None)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// Starts the work. No other work may be running.
    pub(super) fn start(&mut self, work: impl Future<Output = T> + Send + 'static) {
        debug_assert!(self.is_idle(), "one at a time");
        self.0 = Some(tokio::spawn(work));
    }

    /// Waits for the work to end and returns its result.
    ///
    /// Never returns if no work is running. Resumes the panic if the task panicked.
    pub(super) async fn done(&mut self) -> T {
        let Some(task) = &mut self.0 else { return std::future::pending().await };
        let done = task.await;
        self.0 = None;
        match done.map_err(JoinError::try_into_panic) {
            Ok(done) => done,
            Err(Ok(panic)) => resume_unwind(panic),
            // The task was cancelled, which happens only when the runtime shuts down.
            Err(Err(_)) => std::future::pending().await,
        }
    }
}
