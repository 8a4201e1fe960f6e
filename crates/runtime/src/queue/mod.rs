//! The queue of decisions. A call gets a place before its facts are gathered or any work is done
//! for it.
//!
//! The queue is short: it holds the decisions of a quarter of a second, and a bounded number of
//! bytes. A call that finds it full is refused. The refusal is cheap, because no work was done for
//! the call. [`turns`] determines the order of calls and [`throughput`] the length of the queue.
//! [`refusals`] limits the cost of many refusals, and [`refusal_log`] logs them.

mod refusal_log;
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
use authority_ids::TenantId;
use metrics::Counter;
use parking_lot::Mutex;
use tokio::time::sleep;

pub use refusal_log::Cause;
pub use turns::Size;

use refusal_log::RefusalLog;
use refusals::Refusals;
use throughput::Throughput;
use turns::{Entered, Turns};

use crate::stage::Stage;

/// The part of a call's deadline that is reserved for sending a refusal.
const TO_ANSWER: Duration = Duration::from_millis(100);
/// The time from the first refusal to the log line that counts all refusals.
const LOGGED: Duration = Duration::from_secs(1);

/// The queue of one node. Cheap to clone.
#[derive(Clone)]
pub struct DecisionQueue {
    state: Arc<Mutex<State>>,
    /// Locked separately from the places, and only by refusals.
    refused: Arc<Mutex<RefusalLog>>,
}

/// Locked for about ten nanoseconds, three times for each decision. A decision takes about a
/// hundred microseconds.
struct State {
    turns: Turns<QueuePlace>,
    throughput: Throughput,
    refusals: Refusals,
}

/// The number of decisions that a node is processing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Decisions that wait for their places.
    pub waiting: usize,
    /// Decisions with places: they are being made or recorded.
    pub working: usize,
    /// How long the oldest call has waited for its place. Zero if no call waits.
    pub oldest: Duration,
}

impl Default for DecisionQueue {
    fn default() -> Self {
        // Registers the metric with the value 0. Its first increase is then visible.
        refused().increment(0);
        let now = Instant::now();
        let state = State {
            turns: Turns::default(),
            throughput: Throughput::new(now),
            refusals: Refusals::new(now),
        };
        Self { state: Arc::new(Mutex::new(state)), refused: Arc::default() }
    }
}

impl DecisionQueue {
    /// Waits until the call gets a place, in the order of [`turns`]. Dropping the future removes
    /// the call from the queue.
    ///
    /// # Errors
    /// `rate_limited`: the queue is full, and the tenant has used its share of it.
    pub async fn enter(
        &self,
        tenant_id: &TenantId,
        size: Size,
        deadline: Deadline,
    ) -> Result<QueuePlace, ApiError> {
        let entered = {
            let mut state = self.state.lock();
            let most = state.throughput.longest_queue();
            state.turns.enter(tenant_id, size, most)
        };
        let waited = match entered {
            Entered::Working { is_first } => {
                Stage::Wait.took(Duration::ZERO);
                return Ok(self.place(tenant_id.clone(), size, is_first));
            }
            Entered::Waiting(place) => {
                let since = Instant::now();
                place.await.ok().map(|place| (place, since.elapsed()))
            }
            Entered::Full => None,
        };
        if let Some((place, waited)) = waited {
            Stage::Wait.took(waited);
            return Ok(place);
        }
        Box::pin(self.pace(tenant_id, Cause::QueueFull, deadline)).await;
        Err(full())
    }

    /// Whether a call of the tenant would be refused now. If so, its body need not be read.
    pub fn is_full_for(&self, tenant_id: &TenantId) -> bool {
        let state = self.state.lock();
        state.turns.is_full_for(tenant_id, state.throughput.longest_queue())
    }

    /// Waits until a refusal of the tenant's call may be sent. Returns at once while refusals are
    /// few.
    pub async fn pace(&self, tenant_id: &TenantId, cause: Cause, deadline: Deadline) {
        let wait = {
            let mut state = self.state.lock();
            let per_second = state.throughput.per_second();
            state.refusals.wait(per_second, Instant::now())
        };
        if self.refused.lock().note(tenant_id, cause) {
            let queue = self.clone();
            tokio::spawn(async move {
                sleep(LOGGED).await;
                let refused = std::mem::take(&mut *queue.refused.lock());
                refused.write(queue.load().waiting);
            });
        }
        let _waiting = WaitingRefusal(self);
        let wait = wait.min(deadline.left().saturating_sub(TO_ANSWER));
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }

    /// Returns the decisions that the node is processing now.
    pub fn load(&self) -> Load {
        let state = self.state.lock();
        let oldest = state.turns.oldest().map_or(Duration::ZERO, |since| since.elapsed());
        Load { waiting: state.turns.queued(), working: state.turns.working(), oldest }
    }

    fn place(&self, tenant_id: TenantId, size: Size, is_first: bool) -> QueuePlace {
        QueuePlace { queue: self.clone(), tenant_id, size, is_first }
    }

    fn leave(&self, place: &QueuePlace) {
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
        // Sent outside the lock. If a caller has just left, its place is dropped here, which calls
        // this function again.
        for (tenant_id, waiter) in granted {
            let _ = waiter.sender.send(self.place(tenant_id, waiter.size, false));
        }
    }
}

/// The refusal of a call that finds the queue full.
pub fn full() -> ApiError {
    refused().increment(1);
    let text = "the decision queue, which holds the decisions of a quarter of a second, is full, and \
                this tenant has used its share of it; \
                retry after the time in Retry-After";
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

/// A call's place among the decisions in progress, until it is dropped. The recorder also holds the
/// place. A caller that disconnects therefore does not free the place before its entry is finished.
pub struct QueuePlace {
    queue: DecisionQueue,
    tenant_id: TenantId,
    size: Size,
    is_first: bool,
}

impl QueuePlace {
    /// Whether the tenant had few decisions in progress when it got the place, including this
    /// decision.
    pub fn is_first(&self) -> bool {
        self.is_first
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        self.queue.leave(self);
    }
}

#[cfg(test)]
mod tests;
