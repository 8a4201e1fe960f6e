//! The queue of decisions: a call gets a place before anything is gathered, decided or signed for it.
//!
//! It is short: as many decisions as are made in a quarter of a second, and a bounded number of bytes. A call that
//! finds it full is refused, which costs little, since nothing was done for it. [`turns`] is the order,
//! [`throughput`] the length, [`refusals`] what a flood of refusals may cost.

mod refusals;
mod throughput;
mod turns;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use authority_api::{
    deadline::Deadline,
    error::{ApiError, ErrorCode},
};
use authority_core::log_limit::LogLimit;
use authority_ids::TenantId;
use metrics::Counter;
use parking_lot::Mutex;
use tokio::time::sleep;

pub use turns::Size;

use refusals::Refusals;
use throughput::Throughput;
use turns::{Entered, Turns};

/// What remains of a call's deadline when it is refused.
const TO_ANSWER: Duration = Duration::from_millis(100);
/// The interval of the log's lines about refusals.
const LOGGED: Duration = Duration::from_secs(1);

/// The queue of one node. Cheap to clone.
#[derive(Clone)]
pub struct DecisionQueue {
    state: Arc<Mutex<State>>,
    logged: Arc<LogLimit>,
}

/// Held for some ten nanoseconds, three times for each decision, which takes a hundred microseconds.
struct State {
    turns: Turns<Place>,
    throughput: Throughput,
    refusals: Refusals,
}

/// How many decisions a node has in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// They wait for their places.
    pub waiting: usize,
    /// They have places: they are made or recorded.
    pub working: usize,
}

impl Default for DecisionQueue {
    fn default() -> Self {
        // It exists as a metric from the start, so that its first increase is one.
        refused().increment(0);
        let now = Instant::now();
        let state = State {
            turns: Turns::default(),
            throughput: Throughput::new(now),
            refusals: Refusals::new(now),
        };
        Self { state: Arc::new(Mutex::new(state)), logged: Arc::new(LogLimit::new(LOGGED)) }
    }
}

impl DecisionQueue {
    /// Waits for a place, in the tenant's turn. Whoever drops the future has not waited.
    ///
    /// # Errors
    /// `rate_limited`: the queue is full, and the tenant has its share of it.
    pub async fn enter(
        &self,
        tenant_id: &TenantId,
        size: Size,
        deadline: Deadline,
    ) -> Result<Place, ApiError> {
        let entered = {
            let mut state = self.state.lock();
            let most = state.throughput.longest_queue();
            state.turns.enter(tenant_id, size, most)
        };
        let waiting = match entered {
            Entered::Working => return Ok(self.place(tenant_id.clone(), size)),
            Entered::Waiting(place) => place.await.ok(),
            Entered::Full => None,
        };
        if let Some(place) = waiting {
            return Ok(place);
        }
        self.pace(deadline).await;
        Err(full())
    }

    /// Whether a call of the tenant would be refused now: then its body need not be read.
    pub fn is_full_for(&self, tenant_id: &TenantId) -> bool {
        let state = self.state.lock();
        state.turns.is_full_for(tenant_id, state.throughput.longest_queue())
    }

    /// Waits until a refusal may be sent: at once, if there are few.
    pub async fn pace(&self, deadline: Deadline) {
        let (wait, waiting) = {
            let mut state = self.state.lock();
            let per_second = state.throughput.per_second();
            (state.refusals.wait(per_second, Instant::now()), state.turns.queued())
        };
        if let Some(count) = self.logged.pass("refused") {
            tracing::warn!(
                count,
                waiting,
                "refused calls for decisions: the queue is full, or a limit is reached"
            );
        }
        let _waiting = WaitingRefusal(self);
        let wait = wait.min(deadline.left().saturating_sub(TO_ANSWER));
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }

    /// What the node has in hand now.
    pub fn load(&self) -> Load {
        let state = self.state.lock();
        Load { waiting: state.turns.queued(), working: state.turns.working() }
    }

    fn place(&self, tenant_id: TenantId, size: Size) -> Place {
        Place { queue: self.clone(), tenant_id, size }
    }

    fn leave(&self, place: &Place) {
        let mut granted = Vec::new();
        {
            let mut state = self.state.lock();
            let State { turns, throughput, .. } = &mut *state;
            turns.leave(&place.tenant_id, place.size);
            while let Some(next) = turns.next() {
                granted.push(next);
            }
            throughput.note(place.size.decisions, turns.queued() > 0, Instant::now());
        }
        // Not under the lock: the place of a caller that has just left comes back here.
        for (tenant_id, waiter) in granted {
            let _ = waiter.sender.send(self.place(tenant_id, waiter.size));
        }
    }
}

/// The refusal of a call that finds the queue full.
pub fn full() -> ApiError {
    refused().increment(1);
    let text = "more decisions are asked for than can be made, and the tenant has its share of those that wait; \
                ask again after Retry-After";
    ApiError::new(ErrorCode::RateLimited, text).with("retry_after", "1")
}

fn refused() -> Counter {
    metrics::counter!("authority_decisions_refused_total", "reason" => "queue_full")
}

/// A refusal that waits to be sent.
struct WaitingRefusal<'a>(&'a DecisionQueue);

impl Drop for WaitingRefusal<'_> {
    fn drop(&mut self) {
        self.0.state.lock().refusals.sent();
    }
}

/// A call's place among those that are worked on, until it is dropped. The recorder holds it too: a caller that
/// leaves makes no room before its entry is done with.
pub struct Place {
    queue: DecisionQueue,
    tenant_id: TenantId,
    size: Size,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queue.leave(self);
    }
}

#[cfg(test)]
mod tests;
