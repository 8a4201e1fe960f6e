//! The tenants' sub-queues and their order. The order is deficit round robin (Shreedhar and
//! Varghese, 1996).
//!
//! A call waits before any work is done for it, and only behind calls of its own tenant. Whenever a
//! place is free, the tenants take turns. If the queue is full, the tenant with the longest
//! sub-queue loses its last call. A tenant below its share is therefore not refused because of
//! other tenants' requests.

use std::{
    collections::{HashMap, VecDeque},
    time::Instant,
};

use authority_ids::TenantId;
use tokio::sync::oneshot;

/// The number of decisions in progress at a time. One batch can be committed while half a batch is
/// made. More would not be faster, and each decision would wait for the others.
const WORKING: usize = 384;
/// The additional places for first calls of tenants. Such calls do not wait for the next commit.
const FIRST: usize = 128;
/// A call is among its tenant's first while the tenant has fewer decisions in progress than this.
const FEW: usize = 4;
/// The number of decisions in a tenant's turn.
const QUANTUM: usize = 16;
/// The maximum size of all requests that wait or are in progress, in bytes.
const BYTES: usize = 64 << 20;
/// The additional bytes for the first calls of tenants. Such calls do not wait for other tenants'
/// large requests.
const FIRST_BYTES: usize = 16 << 20;
/// The assumed size of a request that was not read yet: the largest gRPC message.
const UNREAD: usize = 1 << 20;

/// The size of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// The number of decisions. More than one for a batch.
    pub decisions: usize,
    /// The bytes of its message.
    pub bytes: usize,
}

/// A call in its tenant's sub-queue.
pub(super) struct Waiter<P> {
    /// Closed once the caller has left. Dropped unused if the call is refused later.
    pub(super) sender: oneshot::Sender<P>,
    pub(super) size: Size,
    since: Instant,
}

/// The state of a tenant with calls in the queue.
struct Tenant<P> {
    waiting: VecDeque<Waiter<P>>,
    /// The number of decisions in `waiting`.
    queued: usize,
    working: usize,
    /// The bytes of the calls that wait or are in progress.
    bytes: usize,
    /// The number of decisions that the tenant may still make in its turn.
    deficit: usize,
}

/// The calls of all tenants. `P` is the place that a call waits for.
pub(super) struct Turns<P> {
    tenants: HashMap<TenantId, Tenant<P>>,
    /// The tenants with waiting calls, the next first.
    order: VecDeque<TenantId>,
    queued: usize,
    working: usize,
    bytes: usize,
}

/// The result of entering a call.
pub(super) enum Entered<P> {
    /// The call has its place. `is_first` is set if its tenant has few decisions in progress,
    /// including this call.
    Working { is_first: bool },
    /// The call waits for its place.
    Waiting(oneshot::Receiver<P>),
    /// The call is refused.
    Full,
}

impl<P> Turns<P> {
    /// Enters a call. At most `most` decisions wait.
    pub(super) fn enter(&mut self, tenant_id: &TenantId, size: Size, most: usize) -> Entered<P> {
        let goes_on = self.goes_on(tenant_id);
        // Only a call that waits lengthens the queue.
        let added = if goes_on { Size { decisions: 0, ..size } } else { size };
        let mut fits = self.fits(tenant_id, added, most);
        if !fits {
            self.drop_left();
            fits = self.fits(tenant_id, added, most) || self.displace(tenant_id, added, most);
        }
        if !fits {
            return Entered::Full;
        }
        let tenant = self.tenants.entry(tenant_id.clone()).or_default();
        tenant.bytes += size.bytes;
        self.bytes += size.bytes;
        if goes_on {
            tenant.working += size.decisions;
            self.working += size.decisions;
            return Entered::Working { is_first: tenant.working <= FEW };
        }
        let (sender, place) = oneshot::channel();
        if tenant.waiting.is_empty() {
            tenant.deficit = QUANTUM;
            self.order.push_back(tenant_id.clone());
        }
        tenant.waiting.push_back(Waiter { sender, size, since: Instant::now() });
        tenant.queued += size.decisions;
        self.queued += size.decisions;
        Entered::Waiting(place)
    }

    /// Whether a decision of the tenant would be refused now, by number or by bytes. The body has
    /// not been read. Its size is therefore assumed to be the largest message's. Such an early
    /// refusal is cheap.
    pub(super) fn is_full_for(&self, tenant_id: &TenantId, most: usize) -> bool {
        let is_refused = |decisions, bytes| {
            let size = Size { decisions, bytes };
            !self.fits(tenant_id, size, most) && self.victim(tenant_id, size, most).is_none()
        };
        let waits = usize::from(!self.goes_on(tenant_id));
        is_refused(waits, 0) || is_refused(0, UNREAD)
    }

    /// Takes the next call that gets a place. The call then counts as in progress.
    pub(super) fn next(&mut self) -> Option<(TenantId, Waiter<P>)> {
        while self.working < WORKING {
            let id = self.order.pop_front()?;
            let Some(tenant) = self.tenants.get_mut(&id) else { continue };
            let Some(first) = tenant.waiting.front() else { continue };
            let decisions = first.size.decisions;
            if first.sender.is_closed() {
                self.order.push_front(id.clone());
                self.forget(&id, VecDeque::pop_front);
                continue;
            }
            if decisions > tenant.deficit {
                // The tenant's turn is over.
                tenant.deficit += QUANTUM;
                self.order.push_back(id);
                continue;
            }
            let Some(waiter) = tenant.waiting.pop_front() else { continue };
            tenant.deficit -= decisions;
            tenant.queued -= decisions;
            tenant.working += decisions;
            self.queued -= decisions;
            self.working += decisions;
            if !tenant.waiting.is_empty() {
                self.order.push_front(id.clone());
            }
            return Some((id, waiter));
        }
        None
    }

    /// Releases a place.
    pub(super) fn leave(&mut self, tenant_id: &TenantId, size: Size) {
        self.working -= size.decisions;
        self.bytes -= size.bytes;
        if let Some(tenant) = self.tenants.get_mut(tenant_id) {
            tenant.working -= size.decisions;
            tenant.bytes -= size.bytes;
        }
        self.drop_if_unused(tenant_id);
    }

    /// Whether a call of the tenant gets its place at once. It overtakes none of the tenant's
    /// calls.
    fn goes_on(&self, tenant_id: &TenantId) -> bool {
        let is_free = self.working < WORKING && self.order.is_empty();
        is_free || (self.has_few(tenant_id) && self.working < WORKING + FIRST)
    }

    /// Whether a call of the tenant would be among its first.
    fn has_few(&self, tenant_id: &TenantId) -> bool {
        let own = self.tenants.get(tenant_id);
        own.is_none_or(|own| own.waiting.is_empty() && own.working < FEW)
    }

    /// Returns the number of waiting decisions.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Returns the number of decisions with places.
    pub(super) fn working(&self) -> usize {
        self.working
    }

    /// Whether there is room without refusing another call. A call of any size fits into an empty
    /// queue.
    fn fits(&self, tenant_id: &TenantId, size: Size, most: usize) -> bool {
        let in_time =
            size.decisions == 0 || self.queued == 0 || self.queued + size.decisions <= most;
        let bytes = if self.has_few(tenant_id) { BYTES + FIRST_BYTES } else { BYTES };
        in_time && (self.bytes == 0 || self.bytes + size.bytes <= bytes)
    }

    /// Refuses the last calls of the tenant with the longest sub-queue, as many as the new call
    /// needs. Refuses none if this sub-queue would become shorter than the sub-queue of the new
    /// call's tenant, including the new call. A queue that is too long only because decisions have
    /// become slower is not shortened.
    fn displace(&mut self, tenant_id: &TenantId, size: Size, most: usize) -> bool {
        let Some(victim) = self.victim(tenant_id, size, most) else { return false };
        let (queued, bytes) = (self.queued.max(most), self.bytes.max(BYTES));
        while self.queued + size.decisions > queued || self.bytes + size.bytes > bytes {
            if !self.forget(&victim, VecDeque::pop_back) {
                return false;
            }
        }
        true
    }

    fn victim(&self, tenant_id: &TenantId, size: Size, most: usize) -> Option<TenantId> {
        let own = self.tenants.get(tenant_id);
        let held = own.map_or(0, |own| own.share(most));
        let needed = held + 2 * share(size, most);
        let others = self.tenants.iter().filter(|(_, other)| !other.waiting.is_empty());
        let shares = others.map(|(id, other)| (other.share(most), id));
        let longest = shares.max_by_key(|(share, _)| *share);
        let longest = longest.filter(|(share, id)| *id != tenant_id && *share >= needed);
        longest.map(|(_, id)| id.clone())
    }

    /// Drops the calls of callers that have left. They must not displace others.
    fn drop_left(&mut self) {
        let (mut queued, mut bytes) = (0, 0);
        for tenant in self.tenants.values_mut() {
            tenant.waiting.retain(|waiter| {
                let left = waiter.sender.is_closed();
                if left {
                    tenant.queued -= waiter.size.decisions;
                    tenant.bytes -= waiter.size.bytes;
                    queued += waiter.size.decisions;
                    bytes += waiter.size.bytes;
                }
                !left
            });
        }
        self.queued -= queued;
        self.bytes -= bytes;
        let tenants = &self.tenants;
        self.order.retain(|id| tenants.get(id).is_some_and(|tenant| !tenant.waiting.is_empty()));
        self.tenants.retain(|_, tenant| tenant.is_used());
    }

    /// Drops one waiting call of the tenant. Returns false if it has none.
    fn forget(
        &mut self,
        tenant_id: &TenantId,
        take: fn(&mut VecDeque<Waiter<P>>) -> Option<Waiter<P>>,
    ) -> bool {
        let Some(tenant) = self.tenants.get_mut(tenant_id) else { return false };
        let Some(waiter) = take(&mut tenant.waiting) else { return false };
        tenant.queued -= waiter.size.decisions;
        tenant.bytes -= waiter.size.bytes;
        self.queued -= waiter.size.decisions;
        self.bytes -= waiter.size.bytes;
        if tenant.waiting.is_empty() {
            self.order.retain(|id| id != tenant_id);
        }
        self.drop_if_unused(tenant_id);
        true
    }

    fn drop_if_unused(&mut self, tenant_id: &TenantId) {
        if self.tenants.get(tenant_id).is_some_and(|tenant| !tenant.is_used()) {
            self.tenants.remove(tenant_id);
        }
    }

    /// Returns the time at which the oldest waiting call entered the queue. Calls of callers that
    /// have left are ignored.
    pub(super) fn oldest(&self) -> Option<Instant> {
        let first = |waiting: &VecDeque<Waiter<P>>| {
            let mut here = waiting.iter().filter(|waiter| !waiter.sender.is_closed());
            here.next().map(|waiter| waiter.since)
        };
        self.tenants.values().filter_map(|tenant| first(&tenant.waiting)).min()
    }
}

impl<P> Tenant<P> {
    fn is_used(&self) -> bool {
        self.working > 0 || !self.waiting.is_empty()
    }

    fn share(&self, most: usize) -> usize {
        share(Size { decisions: self.queued, bytes: self.bytes }, most)
    }
}

/// Returns the greater of a call's two shares of the queue, by decisions and by bytes. [`BYTES`]
/// stands for the whole queue.
fn share(size: Size, most: usize) -> usize {
    (size.decisions * (BYTES / most.max(1))).max(size.bytes)
}

impl<P> Default for Tenant<P> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), queued: 0, working: 0, bytes: 0, deficit: 0 }
    }
}

impl<P> Default for Turns<P> {
    fn default() -> Self {
        let (tenants, order) = (HashMap::new(), VecDeque::new());
        Self { tenants, order, queued: 0, working: 0, bytes: 0 }
    }
}

#[cfg(test)]
mod tests;
