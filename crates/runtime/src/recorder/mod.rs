//! The recorder. One writer commits the entries that were queued during its last commit, as a
//! batch. Another commits a tenant's first calls while the first writer commits a large batch.
//!
//! No timer is used: batches grow with the load, and a single decision does not wait. A response
//! leaves the process only after the commit of its record.

mod askers;
mod batch;
mod column;
mod decisions_sql;
mod entry;
mod health;
mod holds;
mod holds_sql;
mod progress;
mod spend;
mod spend_sql;
mod sql;

use std::{sync::Arc, time::Duration};

use tokio::sync::{Mutex, Notify, mpsc, oneshot};

pub use entry::{ComparedFact, Entry, Hold, InsufficientApproval, Keyed, Outcome};

use super::{queue::QueuePlace, turn::Turn};
use authority_process::{
    clock::Clock,
    worker::{Context, Worker},
};
use authority_store::{Error, Store};
use batch::Batches;
use entry::{OutcomeSender, Queued};
use health::Health;
use progress::Progress;

/// The maximum number of decisions in a transaction. In measurements, 64 to 256 were best.
const MOST: usize = 256;
/// The minimum size of a large batch. While a large batch is written, a tenant's first calls get
/// their own batch.
const LARGE: usize = 32;

/// Sends entries to the writers. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    all: Lane,
    /// The writer for a tenant's first calls while `all` writes a large batch.
    first: Lane,
    store: Store,
    health: Health,
}

/// A writer's queue.
#[derive(Clone)]
struct Lane {
    /// Each entry holds a place. The number of places bounds the length.
    queue: mpsc::UnboundedSender<Queued>,
    progress: Progress,
}

impl Lane {
    fn new(name: &'static str, batches: &Arc<Batches>) -> (Self, Worker) {
        let (queue, waiting) = mpsc::unbounded_channel();
        let progress = Progress::default();
        // The queue is created outside the future and therefore survives a panic.
        let waiting = Arc::new(Mutex::new(waiting));
        let (writing, batches) = (progress.clone(), Arc::clone(batches));
        let writer = Worker::endless(name, move |context| {
            let (waiting, batches) = (Arc::clone(&waiting), Arc::clone(&batches));
            let progress = writing.clone();
            async move {
                write(&mut *waiting.lock().await, &batches, &progress, &context).await;
                Ok::<_, Error>(())
            }
        });
        (Self { queue, progress }, writer.outlasting_calls().critical())
    }
}

impl Recorder {
    /// Creates the recorder and its background work. The work is two writers, and a probe while no
    /// batch is stored. `outbox` is notified after a commit that wrote events into the outbox.
    pub fn new(
        store: Store,
        clock: Clock,
        fenced: bool,
        outbox: Arc<Notify>,
    ) -> (Self, [Worker; 3]) {
        let health = Health::default();
        let probe = health.worker(store.clone());
        let batches = Arc::new(Batches::new(store.clone(), clock, fenced, health.clone(), outbox));
        let (all, writer) = Lane::new("recorder_writer", &batches);
        let (first, first_writer) = Lane::new("recorder_first_writer", &batches);
        (Self { all, first, store, health }, [writer, first_writer, probe])
    }

    /// Whether a decision could be recorded, by the last batch or probe. Uses memory only.
    ///
    /// # Errors
    /// The reason, for operators.
    pub fn can_record(&self) -> Result<(), String> {
        if self.all.queue.is_closed() || self.first.queue.is_closed() {
            return Err("a writer has ended".to_owned());
        }
        self.health.get()
    }

    /// Returns the age of the oldest batch in progress. Zero if there is none. Uses memory only.
    pub fn batch_age(&self) -> Duration {
        self.all.progress.age().max(self.first.progress.age())
    }

    /// Probes now whether a decision could be recorded.
    pub async fn look(&self) -> Result<(), Error> {
        self.health.look(&self.store).await
    }

    /// Stores one entry and returns after its commit. The place is held until the entry is
    /// finished, even if its caller is gone. `turn` is marked as queued.
    #[tracing::instrument(level = "debug", skip_all)]
    pub async fn record(
        &self,
        entry: Entry,
        place: Arc<QueuePlace>,
        turn: Option<&Turn>,
    ) -> Outcome {
        let (sender, answer) = oneshot::channel();
        let lane = if place.is_first() && self.all.progress.size() >= LARGE {
            &self.first
        } else {
            &self.all
        };
        let done = OutcomeSender { sender, _place: place };
        if lane.queue.send(Queued { entry, done }).is_err() {
            return Outcome::Failed;
        }
        if let Some(turn) = turn {
            turn.queued();
        }
        answer.await.unwrap_or(Outcome::Failed)
    }
}

/// Writes queued entries until the worker is stopped and the queue is empty.
///
/// If this panics, each entry of the batch is dropped with its sender. The callers then get
/// [`Outcome::Failed`] and do not hang. [`Outcome::Stored`] is only sent after a commit.
async fn write(
    waiting: &mut mpsc::UnboundedReceiver<Queued>,
    batches: &Batches,
    progress: &Progress,
    context: &Context,
) {
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
        let _writing = progress.begin(queued.len());
        metrics::histogram!("authority_recorder_batch_size").record(count(queued.len()));
        // If the caller is gone or its deadline is over, the decision is not recorded, as if there
        // had been no request.
        let (relaxed, durable): (Vec<_>, Vec<_>) = queued
            .drain(..)
            .filter(|queued| !queued.done.is_left())
            .partition(|queued| queued.entry.relaxed);
        let written = context.round(async {
            let durable = batches.commit(durable).await;
            durable.and(batches.commit(relaxed).await)
        });
        // The callers of failed entries have already received the outcomes.
        let _ = written.await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "a batch is far below 2^52")]
fn count(size: usize) -> f64 {
    size as f64
}
