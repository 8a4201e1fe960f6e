//! The batch that a writer is writing: its start, for operators, and its size.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// The batch that is being written. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<Mutex<Option<Batch>>>);

struct Batch {
    taken: Instant,
    size: usize,
}

impl Progress {
    /// Marks a batch of `size` decisions as being written. The mark ends when the result is
    /// dropped, including by a panic.
    pub(super) fn begin(&self, size: usize) -> Writing<'_> {
        *self.0.lock() = Some(Batch { taken: Instant::now(), size });
        Writing(self)
    }

    /// Returns the age of the batch. Zero if none is written.
    pub(super) fn age(&self) -> Duration {
        self.0.lock().as_ref().map(|batch| batch.taken.elapsed()).unwrap_or_default()
    }

    /// Returns the number of decisions of the batch. Zero if none is written.
    pub(super) fn size(&self) -> usize {
        self.0.lock().as_ref().map(|batch| batch.size).unwrap_or_default()
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
    fn only_a_batch_that_is_written_has_an_age_and_a_size() {
        let progress = Progress::default();
        assert_eq!((progress.age(), progress.size()), (Duration::ZERO, 0));
        let writing = progress.begin(7);
        std::thread::sleep(Duration::from_millis(5));
        assert!(progress.age() >= Duration::from_millis(5));
        assert_eq!(progress.size(), 7);
        drop(writing);
        assert_eq!((progress.age(), progress.size()), (Duration::ZERO, 0));
    }
}
