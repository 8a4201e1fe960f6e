//! The recorder: one writer that commits what queued while its last commit ran.
//!
//! No timer: under load batches grow by themselves, and alone a decision waits for nobody. An
//! answer leaves the process only after the commit of its record.

mod batch;
mod decisions_sql;
mod entry;
mod spend;
mod spend_sql;
mod sql;

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

pub use entry::{Entry, Hold, Key, Outcome};

use authority_engine::{clock::Clock, store::Store};
use batch::Batches;
use entry::Queued;

/// How many decisions one transaction holds at most (facts: 64 to 256 is best).
const MOST: usize = 256;
/// How many may wait: beyond it the service says that it cannot keep up.
const QUEUE: usize = 8192;

/// Hands entries to the writer. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    queue: mpsc::Sender<Queued>,
}

impl Recorder {
    /// Starts the writer; it ends when the last handle is dropped and the queue is empty.
    pub fn start(store: Store, clock: Clock, fenced: bool) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        tokio::spawn(write(waiting, Batches::new(store, clock, fenced)));
        Self { queue }
    }

    /// Whether the writer is there to take entries.
    pub fn is_alive(&self) -> bool {
        !self.queue.is_closed()
    }

    /// Stores one entry; answers after its commit.
    pub async fn record(&self, entry: Entry) -> Outcome {
        let (done, answer) = oneshot::channel();
        // A full queue is refused rather than awaited: the caller's time is running.
        if self.queue.try_send(Queued { entry, done }).is_err() {
            return Outcome::Failed;
        }
        answer.await.unwrap_or(Outcome::Failed)
    }
}

async fn write(mut waiting: mpsc::Receiver<Queued>, batches: Batches) {
    let batches = Arc::new(batches);
    let mut queued = Vec::with_capacity(MOST);
    while waiting.recv_many(&mut queued, MOST).await > 0 {
        metrics::histogram!("authority_batch_decisions").record(count(queued.len()));
        let (relaxed, durable): (Vec<_>, Vec<_>) =
            queued.drain(..).partition(|queued| queued.entry.relaxed);
        for part in [durable, relaxed] {
            if !part.is_empty() {
                batches.commit(part).await;
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a batch is far below 2^52")]
fn count(size: usize) -> f64 {
    size as f64
}
