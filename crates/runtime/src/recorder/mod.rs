//! The recorder: a writer that commits in batches what was queued during its last commit, and a second one
//! for a tenant's first calls while the first writes a large batch.
//!
//! There is no timer: batches grow with the load, and a single decision does not wait. A response
//! leaves the process only after the commit of its record.

mod askers;
mod batch;
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

pub use entry::{Entry, Hold, Keyed, Outcome, Stale};

use super::queue::Place;
use authority_core::{
    clock::Clock,
    store::{Error, Store},
    worker::{Context, Worker},
};
use batch::Batches;
use entry::{Done, Queued};
use health::Health;
use progress::Progress;

/// The most decisions in one transaction (measured: 64 to 256 is best).
const MOST: usize = 256;
/// While so many are written, a tenant's first calls do not wait for them: their batch is one of its own.
const LARGE: usize = 32;

/// Sends entries to the writers. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    all: Lane,
    /// For first calls while `all` writes a large batch.
    first: Lane,
    store: Store,
    health: Health,
}

/// A writer's queue.
#[derive(Clone)]
struct Lane {
    /// Bounded by the places that its entries hold.
    queue: mpsc::UnboundedSender<Queued>,
    progress: Progress,
}

impl Lane {
    fn new(name: &'static str, batches: &Arc<Batches>) -> (Self, Worker) {
        let (queue, waiting) = mpsc::unbounded_channel();
        let progress = Progress::default();
        // Outside the future: the queue outlives a panic.
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
    /// The recorder and its background work: the writers, and a probe while nothing is written. `outbox` is
    /// notified after a commit that wrote events into the outbox.
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

    /// Whether a decision could be recorded, by the last batch or probe: from memory.
    ///
    /// # Errors
    /// Why not, for operators.
    pub fn can_record(&self) -> Result<(), String> {
        if self.all.queue.is_closed() || self.first.queue.is_closed() {
            return Err("a writer has ended".to_owned());
        }
        self.health.get()
    }

    /// How long the older of the present batches has been written; zero if none is. From memory.
    pub fn batch_age(&self) -> Duration {
        self.all.progress.age().max(self.first.progress.age())
    }

    /// Probes now whether a decision could be recorded.
    pub async fn look(&self) -> Result<(), Error> {
        self.health.look(&self.store).await
    }

    /// Stores one entry; returns after its commit. The place is held until the entry is done with, whether or
    /// not its caller is still there.
    #[tracing::instrument(level = "debug", skip_all)]
    pub async fn record(&self, entry: Entry, place: Arc<Place>) -> Outcome {
        let (sender, answer) = oneshot::channel();
        let lane = if place.is_first() && self.all.progress.size() >= LARGE {
            &self.first
        } else {
            &self.all
        };
        let done = Done { sender, _place: place };
        if lane.queue.send(Queued { entry, done }).is_err() {
            return Outcome::Failed;
        }
        answer.await.unwrap_or(Outcome::Failed)
    }
}

/// Writes queued entries until the worker is stopped, and then the rest of the queue.
///
/// If this panics, each entry of the batch is dropped with its sender, so its caller gets
/// [`Outcome::Failed`] and does not hang. [`Outcome::Stored`] is only sent after a commit.
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
