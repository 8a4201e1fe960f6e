//! The order of a batch's requests at the recorder. They are decided concurrently, but approvals
//! and limits are used in the order of the requests in the batch.
//!
//! A request may be decided again, for example because the tenant's authority changed. Its attempts
//! are numbered. An attempt waits until each earlier request has queued an attempt with at least
//! the same number, or is finished.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

/// The longest wait of a request for earlier requests, over all its attempts. It is bounded,
/// because an earlier request of an owner's batch may wait for this one's queue place.
const LONGEST: Duration = Duration::from_millis(500);

/// The turn of one request in its batch. The request is finished when this value is dropped.
pub struct Turn {
    batch: Arc<Mutex<Batch>>,
    number: usize,
    /// The number of the current attempt.
    attempt: usize,
    /// The rest of [`LONGEST`].
    left: Duration,
}

struct Batch {
    requests: Vec<Progress>,
}

enum Progress {
    Deciding,
    /// Waits with this attempt.
    Waiting(usize, oneshot::Sender<()>),
    /// This attempt is queued at the recorder.
    Queued(usize),
    Finished,
}

impl Batch {
    /// Whether each earlier request has queued this attempt or a later one, or is finished.
    fn has_come(&self, number: usize, attempt: usize) -> bool {
        self.requests.iter().take(number).all(|request| match request {
            Progress::Queued(queued) => *queued >= attempt,
            Progress::Finished => true,
            Progress::Deciding | Progress::Waiting(..) => false,
        })
    }

    fn set(&mut self, number: usize, progress: Progress) {
        if let Some(request) = self.requests.get_mut(number) {
            *request = progress;
        }
        // A request that decides or waits blocks all later requests.
        let is_ahead =
            |request: &Progress| matches!(request, Progress::Deciding | Progress::Waiting(..));
        let Some(first) = self.requests.iter().position(is_ahead) else { return };
        let Some(Progress::Waiting(attempt, _)) = self.requests.get(first) else { return };
        if self.has_come(first, *attempt)
            && let Some(request) = self.requests.get_mut(first)
            && let Progress::Waiting(_, sender) = std::mem::replace(request, Progress::Deciding)
        {
            let _ = sender.send(());
        }
    }
}

impl Turn {
    /// Returns the turns of a batch with `size` requests.
    pub(super) fn of_batch(size: usize) -> impl Iterator<Item = Self> {
        let requests = (0..size).map(|_| Progress::Deciding).collect();
        let batch = Arc::new(Mutex::new(Batch { requests }));
        (0..size).map(move |number| {
            let batch = Arc::clone(&batch);
            Self { batch, number, attempt: 0, left: LONGEST }
        })
    }

    /// Waits until the turn of this attempt has come, for the rest of [`LONGEST`] at most.
    pub(super) async fn come(&mut self) {
        let turn = {
            let mut batch = self.batch.lock();
            if batch.has_come(self.number, self.attempt) {
                return;
            }
            let (sender, turn) = oneshot::channel();
            batch.set(self.number, Progress::Waiting(self.attempt, sender));
            turn
        };
        let since = Instant::now();
        // The sender is dropped only with this turn.
        let _ = timeout(self.left, turn).await;
        self.left = self.left.saturating_sub(since.elapsed());
    }

    /// Marks this attempt as queued at the recorder.
    pub(super) fn queued(&self) {
        self.batch.lock().set(self.number, Progress::Queued(self.attempt));
    }

    /// Begins another attempt, because the last one was not recorded.
    pub(super) fn again(&mut self) {
        self.attempt += 1;
        self.batch.lock().set(self.number, Progress::Deciding);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.batch.lock().set(self.number, Progress::Finished);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn has_come(turn: &mut Turn) -> bool {
        turn.come().now_or_never().is_some()
    }

    #[tokio::test]
    async fn a_request_waits_for_all_before_it() {
        let mut turns: Vec<_> = Turn::of_batch(4).map(Some).collect();
        let [first, second, third, fourth] = &mut turns[..] else { unreachable!() };
        let mut waiting = third.take().unwrap();
        let mut third = Box::pin(waiting.come());
        assert!(has_come(first.as_mut().unwrap()));
        assert!(third.as_mut().now_or_never().is_none());
        // The second request is finished first.
        *second = None;
        assert!(third.as_mut().now_or_never().is_none());
        first.as_ref().unwrap().queued();
        assert!(third.as_mut().now_or_never().is_some());
        drop(third);
        assert!(!has_come(fourth.as_mut().unwrap()));
        drop(waiting);
        assert!(has_come(fourth.as_mut().unwrap()));
    }

    #[tokio::test]
    async fn another_attempt_keeps_its_place() {
        let mut turns: Vec<_> = Turn::of_batch(3).map(Some).collect();
        let [first, second, third] = &mut turns[..] else { unreachable!() };
        first.as_ref().unwrap().queued();
        second.as_ref().unwrap().queued();
        third.as_ref().unwrap().queued();
        // None was recorded. The last request learns of it first.
        let mut waiting = third.take().unwrap();
        waiting.again();
        let mut third = Box::pin(waiting.come());
        assert!(third.as_mut().now_or_never().is_none());
        let second = second.as_mut().unwrap();
        second.again();
        assert!(!has_come(second));
        // The first request was recorded after all.
        *first = None;
        assert!(has_come(second));
        assert!(third.as_mut().now_or_never().is_none());
        second.queued();
        assert!(third.as_mut().now_or_never().is_some());
    }

    #[tokio::test]
    async fn all_attempts_together_wait_no_longer_than_the_bound() {
        let mut turns = Turn::of_batch(2);
        let (_first, mut second) = (turns.next(), turns.next().unwrap());
        let since = Instant::now();
        for _ in 0..3 {
            second.come().await;
            second.queued();
            second.again();
        }
        assert!((LONGEST..LONGEST * 2).contains(&since.elapsed()), "{:?}", since.elapsed());
    }
}
