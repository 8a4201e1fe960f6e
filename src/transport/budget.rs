//! The unread response bytes of all connections of the node together.
//!
//! Beyond the budget connections are cut, those first that hold the most for the longest. New responses are not
//! refused instead: then a few peers that read nothing could keep everybody else from an answer, health included.

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;

use super::activity::Activity;

/// Connections are cut until this part of the budget is free again, an eighth: few overruns then need a look at all of
/// them.
const FREED: u64 = 8;

/// The budget, which all addresses share.
#[derive(Debug)]
pub struct Budget {
    most: u64,
    held: AtomicU64,
    /// Those that are open, by the address of their counters.
    connections: Mutex<HashMap<usize, Arc<Activity>>>,
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

    /// Sets the gauge to what is held now.
    #[expect(clippy::cast_precision_loss, reason = "a node's memory is far below 2^52 bytes")]
    pub fn measure(&self) {
        metrics::gauge!("transport_unsent_bytes").set(self.held() as f64);
    }

    pub(super) fn take(&self, bytes: u64) {
        if self.held.fetch_add(bytes, Relaxed) + bytes > self.most {
            self.relieve();
        }
    }

    pub(super) fn give_back(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Relaxed);
    }

    pub(super) fn enter(self: &Arc<Self>, activity: &Arc<Activity>) -> Member {
        let key = Arc::as_ptr(activity).addr();
        self.connections.lock().insert(key, Arc::clone(activity));
        Member { budget: Arc::clone(self), key }
    }

    /// Cuts connections until the budget holds again.
    fn relieve(&self) {
        let connections = self.connections.lock();
        if self.held() <= self.most {
            return; // another thread did it meanwhile
        }
        let mut holders: Vec<_> = connections.values().map(|one| (one.weight(), one)).collect();
        holders.sort_unstable_by_key(|(weight, _)| Reverse(*weight));
        for (_, activity) in holders {
            if self.held() <= self.most - self.most / FREED {
                break;
            }
            if activity.cut() {
                metrics::counter!("transport_connections_cut_total").increment(1);
            }
        }
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
    use crate::transport::activity::Running;

    /// A connection that holds so much of a budget.
    fn holding(budget: &Arc<Budget>, bytes: u64) -> (Arc<Activity>, Member, Running) {
        let activity = Activity::new(u64::MAX / 4, budget);
        let member = budget.enter(&activity);
        let running = activity.start();
        running.recount(0, bytes);
        (activity, member, running)
    }

    fn is_cut(activity: &Activity) -> bool {
        activity.weight() == 0
    }

    #[test]
    fn the_largest_is_cut_and_no_more_than_need_be() {
        let budget = Budget::new(1000);
        let (small, _a, _b) = holding(&budget, 100);
        let (large, _c, running) = holding(&budget, 600);
        let (other, _d, _e) = holding(&budget, 290);
        assert_eq!(budget.held(), 990);
        assert!(![&small, &large, &other].iter().any(|one| is_cut(one)));
        let (last, _f, _g) = holding(&budget, 20);
        assert!(is_cut(&large));
        assert!(![&small, &other, &last].iter().any(|one| is_cut(one)));
        assert_eq!(budget.held(), 410);
        // What it frees is not counted twice.
        running.recount(600, 0);
        running.recount(0, 50);
        running.recount(50, 0);
        assert_eq!(budget.held(), 410);
    }

    #[test]
    fn what_is_held_for_long_weighs_more() {
        let budget = Budget::new(1000);
        let (old, _a, _b) = holding(&budget, 300);
        let (read, _c, running) = holding(&budget, 300);
        sleep(Duration::from_millis(100));
        // This one's peer has taken everything meanwhile.
        running.recount(300, 0);
        let (large, _d, running_new) = holding(&budget, 500);
        drop(running);
        running_new.recount(500, 701);
        assert!(is_cut(&old) && !is_cut(&large));
        assert_eq!(budget.held(), 701);
        assert_eq!(read.weight(), 0, "it holds nothing");
    }

    #[test]
    fn a_connection_that_has_ended_is_no_longer_looked_at() {
        let budget = Budget::new(1000);
        let (_activity, member, _running) = holding(&budget, 10);
        assert_eq!(budget.connections.lock().len(), 1);
        drop(member);
        assert!(budget.connections.lock().is_empty());
    }
}
