//! How long the writer has been writing its batch, for operators.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// When the batch that is written was taken. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<Mutex<Option<Instant>>>);

impl Progress {
    /// A batch is written until the result is dropped, by a panic too.
    pub(super) fn begin(&self) -> Writing<'_> {
        *self.0.lock() = Some(Instant::now());
        Writing(self)
    }

    /// The age of the batch; zero if none is written.
    pub(super) fn age(&self) -> Duration {
        self.0.lock().map(|taken| taken.elapsed()).unwrap_or_default()
    }
}

pub(super) struct Writing<'a>(&'a Progress);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_batch_that_is_written_has_an_age() {
        let progress = Progress::default();
        assert_eq!(progress.age(), Duration::ZERO);
        let writing = progress.begin();
        std::thread::sleep(Duration::from_millis(5));
        assert!(progress.age() >= Duration::from_millis(5));
        drop(writing);
        assert_eq!(progress.age(), Duration::ZERO);
    }
}
