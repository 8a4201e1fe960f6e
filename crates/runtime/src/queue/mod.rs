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
use authority_ids::TenantId;
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
pub struct DecisionQueue(Arc<Mutex<State>>);

/// Held for some ten nanoseconds, three times for each decision, which takes a hundred microseconds.
struct State {
    turns: Turns<Place>,
    throughput: Throughput,
    refusals: Refusals,
    /// Refusals that were not logged yet.
    refused: u64,
    logged: Option<Instant>,
}

impl Default for DecisionQueue {
    fn default() -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(State {
            turns: Turns::default(),
            throughput: Throughput::new(now),
            refusals: Refusals::new(now),
            refused: 0,
            logged: None,
        })))
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
            let mut state = self.0.lock();
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
        let state = self.0.lock();
        state.turns.is_full_for(tenant_id, state.throughput.longest_queue())
    }

    /// Waits until a refusal may be sent: at once, if there are few.
    pub async fn pace(&self, deadline: Deadline) {
        let wait = {
            let mut state = self.0.lock();
            let now = Instant::now();
            state.log(now);
            let per_second = state.throughput.per_second();
            state.refusals.wait(per_second, now)
        };
        let _waiting = WaitingRefusal(self);
        let wait = wait.min(deadline.left().saturating_sub(TO_ANSWER));
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }

    fn place(&self, tenant_id: TenantId, size: Size) -> Place {
        Place { queue: self.clone(), tenant_id, size }
    }

    fn leave(&self, place: &Place) {
        let mut granted = Vec::new();
        {
            let mut state = self.0.lock();
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
    metrics::counter!("authority_decisions_refused_total", "reason" => "queue_full").increment(1);
    let text = "more decisions are asked for than can be made, and the tenant has its share of those that wait; \
                ask again after Retry-After";
    ApiError::new(ErrorCode::RateLimited, text).with("retry_after", "1")
}

impl State {
    /// Counts a refusal, and logs how many there were, once a second.
    fn log(&mut self, now: Instant) {
        self.refused += 1;
        if self.logged.is_none_or(|last| now.saturating_duration_since(last) >= LOGGED) {
            let (refused, waiting) = (self.refused, self.turns.queued());
            tracing::warn!(refused, waiting, "refused calls for decisions: the queue is full, or a limit is reached");
            (self.refused, self.logged) = (0, Some(now));
        }
    }
}

/// A refusal that waits to be sent.
struct WaitingRefusal<'a>(&'a DecisionQueue);

impl Drop for WaitingRefusal<'_> {
    fn drop(&mut self) {
        self.0.0.lock().refusals.sent();
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
