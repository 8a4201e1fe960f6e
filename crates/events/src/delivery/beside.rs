//! Work of a loop that runs in a task of its own, one at a time.

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

    /// Begins it; nothing else may be under way.
    pub(super) fn start(&mut self, work: impl Future<Output = T> + Send + 'static) {
        debug_assert!(self.is_idle(), "one at a time");
        self.0 = Some(tokio::spawn(work));
    }

    /// What came of it, once it has ended; never while there is none. A panic goes on here.
    pub(super) async fn done(&mut self) -> T {
        let Some(task) = &mut self.0 else { return std::future::pending().await };
        let done = task.await;
        self.0 = None;
        match done.map_err(JoinError::try_into_panic) {
            Ok(done) => done,
            Err(Ok(panic)) => resume_unwind(panic),
            // Only the runtime's end cancels it.
            Err(Err(_)) => std::future::pending().await,
        }
    }
}
