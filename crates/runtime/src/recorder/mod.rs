//! The recorder: one writer that commits in batches what was queued during its last commit.
//!
//! There is no timer: batches grow with the load, and a single decision does not wait. A response
//! leaves the process only after the commit of its record.

mod askers;
mod batch;
mod decisions_sql;
mod entry;
mod health;
mod spend;
mod spend_sql;
mod sql;

use std::sync::Arc;

use tokio::sync::{Mutex, Notify, Semaphore, mpsc, oneshot};

pub use entry::{Entry, Hold, Keyed, Outcome};

use authority_core::{
    clock::Clock,
    store::{Error, Store},
    worker::{Context, Worker},
};
use batch::Batches;
use entry::{Done, Queued};
use health::Health;

/// The most decisions in one transaction (measured: 64 to 256 is best).
const MOST: usize = 256;
/// The most decisions in the queue; beyond it the service answers that it is overloaded.
const QUEUE: usize = 8192;
/// The most bytes of callers' data in the queue: on average 8 KiB for each decision.
const QUEUED_BYTES: usize = QUEUE << 13;

/// Sends entries to the writer. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    queue: mpsc::Sender<Queued>,
    /// A permit for each byte, held until the entry is done, whether or not its caller is still
    /// there.
    bytes: Arc<Semaphore>,
    store: Store,
    health: Health,
}

impl Recorder {
    /// The recorder and its background work: the writer, and a probe while nothing is written. `outbox` is
    /// notified after a commit that wrote events into the outbox.
    pub fn new(
        store: Store,
        clock: Clock,
        fenced: bool,
        outbox: Arc<Notify>,
    ) -> (Self, [Worker; 2]) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let health = Health::default();
        let probe = health.worker(store.clone());
        let batches = Arc::new(Batches::new(store.clone(), clock, fenced, health.clone(), outbox));
        // Outside the future: the queue outlives a panic.
        let waiting = Arc::new(Mutex::new(waiting));
        let writer = Worker::endless("recorder_writer", move |context| {
            let (waiting, batches) = (Arc::clone(&waiting), Arc::clone(&batches));
            async move {
                write(&mut *waiting.lock().await, &batches, &context).await;
                Ok::<_, Error>(())
            }
        });
        let recorder = Self { queue, bytes: Arc::new(Semaphore::new(QUEUED_BYTES)), store, health };
        (recorder, [writer.outlasting_calls().critical(), probe])
    }

    /// Whether a decision could be recorded, by the last batch or probe: from memory.
    ///
    /// # Errors
    /// Why not, for operators.
    pub fn can_record(&self) -> Result<(), String> {
        if self.queue.is_closed() {
            return Err("the writer has ended".to_owned());
        }
        self.health.get()
    }

    /// Probes now whether a decision could be recorded.
    pub async fn look(&self) -> Result<(), Error> {
        self.health.look(&self.store).await
    }

    /// Stores one entry; returns after its commit.
    #[tracing::instrument(level = "debug", skip_all)]
    pub async fn record(&self, entry: Entry) -> Outcome {
        let (done, answer) = oneshot::channel();
        let size = u32::try_from(entry.size()).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.bytes).try_acquire_many_owned(size);
        let Ok(room) = room else { return Outcome::Failed };
        let done = Done { sender: done, _room: room };
        // A full queue is an error at once, since the caller has a deadline.
        if self.queue.try_send(Queued { entry, done }).is_err() {
            return Outcome::Failed;
        }
        answer.await.unwrap_or(Outcome::Failed)
    }
}

/// Writes queued entries until the worker is stopped, and then the rest of the queue.
///
/// If this panics, each entry of the batch is dropped with its sender, so its caller gets
/// [`Outcome::Failed`] and does not hang. [`Outcome::Stored`] is only sent after a commit.
async fn write(waiting: &mut mpsc::Receiver<Queued>, batches: &Batches, context: &Context) {
    let mut queued = Vec::with_capacity(MOST);
    loop {
        tokio::select! {
            biased;
            () = context.stopped(), if !waiting.is_closed() => {
                waiting.close();
                continue;
            }
            _ = waiting.recv_many(&mut queued, MOST) => {}
        }
        if queued.is_empty() {
            return;
        }
        metrics::histogram!("authority_batch_decisions").record(count(queued.len()));
        // If the caller is gone or its deadline is over, nothing is recorded, as if it had not
        // asked.
        let (relaxed, durable): (Vec<_>, Vec<_>) = queued
            .drain(..)
            .filter(|queued| !queued.done.is_left())
            .partition(|queued| queued.entry.relaxed);
        let written = context.round(async {
            let durable = batches.commit(durable).await;
            durable.and(batches.commit(relaxed).await)
        });
        // The failed entries have their outcomes.
        let _ = written.await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "a batch is far below 2^52")]
fn count(size: usize) -> f64 {
    size as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry whose caller is gone still takes its room in the queue.
    #[tokio::test]
    async fn room_is_kept_until_the_entry_is_done_with() {
        let bytes = Arc::new(Semaphore::new(10));
        let (sender, answer) = oneshot::channel();
        let room = Arc::clone(&bytes).try_acquire_many_owned(8).unwrap();
        let done = Done { sender, _room: room };
        drop(answer);
        assert!(Arc::clone(&bytes).try_acquire_many_owned(3).is_err());
        assert_eq!(done.send(Outcome::Failed), Err(Outcome::Failed));
        assert!(bytes.try_acquire_many_owned(10).is_ok());
    }
}
