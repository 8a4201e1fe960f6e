//! How long each stage of a decision takes: `authority_decision_stage_seconds{stage}`.

use std::time::{Duration, Instant};

/// A stage of a decision, in their order.
#[derive(Clone, Copy)]
pub(super) enum Stage {
    /// For a place in the queue.
    Wait,
    /// Facts from the graph in memory.
    Gather,
    /// Counters and the cited approval, from the database if the request needs them.
    Load,
    Decide,
    /// The canonical record, its digest and its signature.
    Sign,
    /// From the recorder's queue to the commit.
    Record,
}

impl Stage {
    /// The result of `work`, measured.
    pub(super) fn time<T>(self, work: impl FnOnce() -> T) -> T {
        let since = Instant::now();
        let done = work();
        self.took(since.elapsed());
        done
    }

    /// The same for work that waits. If the caller leaves, nothing is measured.
    pub(super) async fn wait<T>(self, work: impl Future<Output = T>) -> T {
        let since = Instant::now();
        let done = work.await;
        self.took(since.elapsed());
        done
    }

    /// Each label is a constant, so that no key is built on the way to a decision.
    pub(super) fn took(self, time: Duration) {
        const NAME: &str = "authority_decision_stage_seconds";
        let histogram = match self {
            Self::Wait => metrics::histogram!(NAME, "stage" => "wait"),
            Self::Gather => metrics::histogram!(NAME, "stage" => "gather"),
            Self::Load => metrics::histogram!(NAME, "stage" => "load"),
            Self::Decide => metrics::histogram!(NAME, "stage" => "decide"),
            Self::Sign => metrics::histogram!(NAME, "stage" => "sign"),
            Self::Record => metrics::histogram!(NAME, "stage" => "record"),
        };
        histogram.record(time.as_secs_f64());
    }
}
