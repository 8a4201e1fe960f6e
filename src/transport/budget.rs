//! Limits the unread response bytes of all the node's connections together.
//!
//! Beyond the budget, connections that hold the most bytes for the longest time are cut first. If
//! new responses were refused instead, a few peers that never read could block every response,
//! health checks included.

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

/// The bit in a connection's byte count that marks the connection as cut. Its bytes then no longer
/// count for the node.
const CUT: u64 = 1 << 63;

/// When connections are cut, the budget divided by this is freed: an eighth.
///
/// With this reserve, few overruns need a scan of all connections.
const FREED: u64 = 8;

/// The budget, which all addresses share.
#[derive(Debug)]
pub struct Budget {
    most: u64,
    held: AtomicU64,
    /// The open connections, by the address of their counters.
    connections: Mutex<HashMap<usize, Arc<Share>>>,
}

impl Budget {
    /// A budget of this many bytes.
    pub fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { most, held: AtomicU64::new(0), connections: Mutex::default() })
    }

    /// The unread bytes of all connections that are not cut.
    pub fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// Sets the gauge to the bytes held now.
    #[expect(clippy::cast_precision_loss, reason = "a node's memory is far below 2^52 bytes")]
    pub fn measure(&self) {
        metrics::gauge!("authority_transport_unsent_bytes").set(self.held() as f64);
    }

    fn take(&self, bytes: u64) {
        if self.held.fetch_add(bytes, Relaxed) + bytes > self.most {
            self.relieve();
        }
    }

    /// Adds a connection without unread bytes, which may be cut until the returned guard is
    /// dropped.
    pub(super) fn enter(self: &Arc<Self>) -> (Arc<Share>, Member) {
        let share = Arc::new(Share {
            budget: Arc::clone(self),
            began: Instant::now(),
            unsent: AtomicU64::new(0),
            held_since: AtomicU64::new(0),
            cut: Notify::new(),
        });
        let key = Arc::as_ptr(&share).addr();
        self.connections.lock().insert(key, Arc::clone(&share));
        (share, Member { budget: Arc::clone(self), key })
    }

    /// Cuts connections until an eighth of the budget is free, if the budget is exceeded.
    fn relieve(&self) {
        let connections = self.connections.lock();
        if self.held() <= self.most {
            return; // another thread has already cut connections
        }
        let mut holders: Vec<_> = connections.values().map(|one| (one.weight(), one)).collect();
        holders.sort_unstable_by_key(|(weight, _)| Reverse(*weight));
        for (_, share) in holders {
            if self.held() <= self.most - self.most / FREED {
                break;
            }
            if share.cut() {
                metrics::counter!("authority_transport_connections_cut_total").increment(1);
            }
        }
    }
}

/// The unread bytes of one connection.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<Budget>,
    began: Instant,
    /// The number of unread bytes, with the bit [`CUT`] once the connection is cut.
    unsent: AtomicU64,
    /// Milliseconds from `began` to the time when the connection last started to hold bytes.
    held_since: AtomicU64,
    cut: Notify,
}

impl Share {
    pub(super) fn unsent(&self) -> u64 {
        self.unsent.load(Relaxed) & !CUT
    }

    pub(super) fn take(&self, bytes: u64) {
        let before = self.unsent.fetch_add(bytes, Relaxed);
        if before == 0 {
            self.held_since.store(self.millis(), Relaxed);
        }
        if before & CUT == 0 {
            self.budget.take(bytes);
        }
    }

    /// Subtracts bytes that the peer has read. Returns the number of unread bytes before that.
    pub(super) fn give_back(&self, bytes: u64) -> u64 {
        let before = self.unsent.fetch_sub(bytes, Relaxed);
        if before & CUT == 0 {
            self.budget.held.fetch_sub(bytes, Relaxed);
        }
        before & !CUT
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The bytes times the duration for which they are held. Bytes that are soon read weigh little.
    fn weight(&self) -> u128 {
        let unsent = self.unsent.load(Relaxed);
        if unsent & CUT != 0 {
            return 0;
        }
        let held = self.millis().saturating_sub(self.held_since.load(Relaxed));
        u128::from(unsent) * u128::from(held.max(1))
    }

    /// Ends the connection and stops counting its bytes for the node. Returns whether it was still
    /// open.
    fn cut(&self) -> bool {
        let before = self.unsent.fetch_or(CUT, Relaxed);
        if before & CUT != 0 {
            return false;
        }
        self.budget.held.fetch_sub(before, Relaxed);
        self.cut.notify_one();
        true
    }

    /// Completes when the connection is cut.
    pub(super) async fn when_cut(&self) {
        self.cut.notified().await;
    }
}

/// An open connection, which may be cut.
pub(super) struct Member {
    budget: Arc<Budget>,
    key: usize,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.budget.connections.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::{thread::sleep, time::Duration};

    use super::*;

    /// A connection that holds some bytes of a budget.
    fn holding(budget: &Arc<Budget>, bytes: u64) -> (Arc<Share>, Member) {
        let (share, member) = budget.enter();
        share.take(bytes);
        (share, member)
    }

    fn is_cut(share: &Share) -> bool {
        share.unsent.load(Relaxed) & CUT != 0
    }

    #[test]
    fn the_largest_is_cut_and_no_more_than_need_be() {
        let budget = Budget::new(1000);
        let (small, _a) = holding(&budget, 100);
        let (large, _b) = holding(&budget, 600);
        let (other, _c) = holding(&budget, 290);
        assert_eq!(budget.held(), 990);
        assert!(![&small, &large, &other].iter().any(|one| is_cut(one)));
        let (last, _d) = holding(&budget, 20);
        assert!(is_cut(&large));
        assert!(![&small, &other, &last].iter().any(|one| is_cut(one)));
        assert_eq!(budget.held(), 410);
        // The freed bytes are not counted twice.
        large.give_back(600);
        large.take(50);
        large.give_back(50);
        assert_eq!((budget.held(), large.unsent()), (410, 0));
    }

    #[test]
    fn what_is_held_for_long_weighs_more() {
        let budget = Budget::new(1000);
        let (old, _a) = holding(&budget, 300);
        let (read, _b) = holding(&budget, 300);
        sleep(Duration::from_millis(100));
        // Its peer has read everything since then.
        read.give_back(300);
        let (large, _c) = holding(&budget, 500);
        large.take(201);
        assert!(is_cut(&old) && !is_cut(&large) && !is_cut(&read));
        assert_eq!(budget.held(), 701);
    }

    #[test]
    fn a_connection_that_has_ended_is_no_longer_looked_at() {
        let budget = Budget::new(1000);
        let (_share, member) = holding(&budget, 10);
        assert_eq!(budget.connections.lock().len(), 1);
        drop(member);
        assert!(budget.connections.lock().is_empty());
    }
}
