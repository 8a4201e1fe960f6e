//! The recorder: one writer that commits what queued while its last commit ran.
//!
//! No timer: under load batches grow by themselves, and alone a decision waits for nobody. An
//! answer leaves the process only after the commit of its record.

mod askers;
mod batch;
mod decisions_sql;
mod entry;
mod health;
mod spend;
mod spend_sql;
mod sql;

use std::sync::Arc;

use tokio::sync::{Mutex, Semaphore, mpsc, oneshot};

pub use entry::{Entry, Hold, Keyed, Outcome};

use authority_core::{
    clock::Clock,
    store::{Error, Store},
    worker::{Context, Worker},
};
use batch::Batches;
use entry::{Done, Queued};
use health::Health;

/// How many decisions one transaction holds at most (facts: 64 to 256 is best).
const MOST: usize = 256;
/// How many may wait: beyond it the service says that it cannot keep up.
const QUEUE: usize = 8192;
/// And how much of what callers sent may wait with them, in bytes: 8 KiB each, were they all alike.
const QUEUED_BYTES: usize = QUEUE << 13;

/// Hands entries to the writer. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    queue: mpsc::Sender<Queued>,
    /// A permit a byte, held until the entry is done with, whether or not its caller is still there.
    bytes: Arc<Semaphore>,
    store: Store,
    health: Health,
}

impl Recorder {
    /// The recorder and its background work: the writer, and a probe while nothing is written.
    pub fn new(store: Store, clock: Clock, fenced: bool) -> (Self, [Worker; 2]) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let health = Health::default();
        let probe = health.worker(store.clone());
        let batches = Arc::new(Batches::new(store.clone(), clock, fenced, health.clone()));
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

    /// Whether a decision could be recorded, as far as the last batch or a probe tells: from memory.
    ///
    /// # Errors
    /// Why not, for operators.
    pub fn can_record(&self) -> Result<(), String> {
        if self.queue.is_closed() {
            return Err("the writer has ended".to_owned());
        }
        self.health.get()
    }

    /// Looks now whether a decision could be recorded.
    pub async fn look(&self) -> Result<(), Error> {
        self.health.look(&self.store).await
    }

    /// Stores one entry; answers after its commit.
    #[tracing::instrument(level = "debug", skip_all)]
    pub async fn record(&self, entry: Entry) -> Outcome {
        let (done, answer) = oneshot::channel();
        let size = u32::try_from(entry.size()).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.bytes).try_acquire_many_owned(size);
        let Ok(room) = room else { return Outcome::Failed };
        let done = Done { sender: done, _room: room };
        // A full queue is refused rather than awaited: the caller's time is running.
        if self.queue.try_send(Queued { entry, done }).is_err() {
            return Outcome::Failed;
        }
        answer.await.unwrap_or(Outcome::Failed)
    }
}

/// Writes what is queued until the worker is stopped, and then the rest of the queue.
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
        // Who has gone, or whose time is over, is not recorded: it is as if it had not been asked.
        let (relaxed, durable): (Vec<_>, Vec<_>) = queued
            .drain(..)
            .filter(|queued| !queued.done.is_left())
            .partition(|queued| queued.entry.relaxed);
        let written = context.round(async {
            let durable = batches.commit(durable).await;
            durable.and(batches.commit(relaxed).await)
        });
        // Those that it failed for were told.
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

    /// What a caller left behind still takes its room: it is in the queue.
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
