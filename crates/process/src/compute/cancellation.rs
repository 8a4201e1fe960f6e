//! Cancels a job when its caller has left.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// Cancels a job when its caller drops the future, and at its deadline.
#[derive(Clone)]
pub(super) struct Cancellation {
    pub(super) left: Arc<AtomicBool>,
    pub(super) until: Instant,
}

impl Cancellation {
    pub(super) fn is_cancelled(&self) -> bool {
        self.left.load(Ordering::Relaxed) || Instant::now() >= self.until
    }
}

/// Cancels the job when the waiting future is dropped.
pub(super) struct CancelOnDrop(pub(super) Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
