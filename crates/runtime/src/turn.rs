//! The order of a batch's requests at the recorder. They are decided concurrently, but approvals
//! and limits are used in the order of the requests in the batch.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::oneshot, time::timeout};

/// The longest wait for earlier requests. A request that waits has a place in the queue, and an
/// earlier request of an owner's batch may still wait for one.
const LONGEST: Duration = Duration::from_millis(500);

/// The turn of one request in its batch. The turn ends when this value is dropped.
pub struct Turn {
    batch: Arc<Mutex<Batch>>,
    number: usize,
}

struct Batch {
    requests: Vec<Progress>,
    /// The index of the first request with a turn that has not ended.
    first: usize,
}

enum Progress {
    Deciding,
    Waiting(oneshot::Sender<()>),
    Passed,
}

impl Turn {
    /// Returns the turns of a batch with `size` requests.
    pub(super) fn of_batch(size: usize) -> impl Iterator<Item = Self> {
        let requests = (0..size).map(|_| Progress::Deciding).collect();
        let batch = Arc::new(Mutex::new(Batch { requests, first: 0 }));
        (0..size).map(move |number| Self { batch: Arc::clone(&batch), number })
    }

    /// Waits until the turns of all earlier requests in the batch have ended, for [`LONGEST`] at most.
    pub(super) async fn come(&self) {
        let turn = {
            let mut batch = self.batch.lock();
            if batch.first >= self.number {
                return;
            }
            let (sender, turn) = oneshot::channel();
            if let Some(progress) = batch.requests.get_mut(self.number) {
                *progress = Progress::Waiting(sender);
            }
            turn
        };
        // The sender is dropped only with this turn.
        let _ = timeout(LONGEST, turn).await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut batch = self.batch.lock();
        let Batch { requests, first } = &mut *batch;
        if let Some(progress) = requests.get_mut(self.number) {
            *progress = Progress::Passed;
        }
        while matches!(requests.get(*first), Some(Progress::Passed)) {
            *first += 1;
        }
        if let Some(progress) = requests.get_mut(*first)
            && let Progress::Waiting(sender) = std::mem::replace(progress, Progress::Deciding)
        {
            let _ = sender.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_request_waits_for_all_before_it() {
        let mut turns: Vec<_> = Turn::of_batch(4).map(Some).collect();
        let [first, second, third, fourth] = &mut turns[..] else { unreachable!() };
        let waiting = third.take().unwrap();
        let mut third = Box::pin(waiting.come());
        assert!(first.as_ref().unwrap().come().now_or_never().is_some());
        assert!(third.as_mut().now_or_never().is_none());
        // The second turn ends first.
        *second = None;
        assert!(third.as_mut().now_or_never().is_none());
        *first = None;
        assert!(third.as_mut().now_or_never().is_some());
        drop(third);
        assert!(fourth.as_ref().unwrap().come().now_or_never().is_none());
        drop(waiting);
        assert!(fourth.as_ref().unwrap().come().now_or_never().is_some());
    }
}
