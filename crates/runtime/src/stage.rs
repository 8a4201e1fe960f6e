//! How long each stage of a decision takes: `authority_decision_stage_seconds{stage}`.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use metrics::Histogram;

/// A stage of a decision, in execution order.
#[derive(Clone, Copy)]
pub(super) enum Stage {
    /// Waits for a place in the queue.
    Wait,
    /// Gathers facts from the graph in memory.
    Gather,
    /// Loads counters and the cited approval. The database is read if the request needs them.
    Load,
    Decide,
    /// Creates the canonical record, its digest and its signature.
    Sign,
    /// From the recorder's queue to the commit.
    Record,
}

impl Stage {
    /// Runs `work` and measures it.
    pub(super) fn time<T>(self, work: impl FnOnce() -> T) -> T {
        let since = Instant::now();
        let done = work();
        self.took(since.elapsed());
        done
    }

    /// Awaits `work` and measures it. If the caller leaves, no time is recorded.
    pub(super) async fn wait<T>(self, work: impl Future<Output = T>) -> T {
        let since = Instant::now();
        let done = work.await;
        self.took(since.elapsed());
        done
    }

    /// Records a stage's time. Looks each histogram up only once.
    pub(super) fn took(self, time: Duration) {
        static HISTOGRAMS: [OnceLock<Histogram>; 6] = [const { OnceLock::new() }; 6];
        let label = match self {
            Self::Wait => "wait",
            Self::Gather => "gather",
            Self::Load => "load",
            Self::Decide => "decide",
            Self::Sign => "sign",
            Self::Record => "record",
        };
        let histogram =
            || metrics::histogram!("authority_decision_stage_seconds", "stage" => label);
        HISTOGRAMS[self as usize].get_or_init(histogram).record(time.as_secs_f64());
    }
}
