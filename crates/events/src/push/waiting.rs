//! The pushes that this node has taken up and not finished.
//!
//! Equal pushes are kept once. Limits ensure that one tenant's pushes don't delay other tenants'
//! pushes.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::due::Due;

/// The most pushes of this node that wait or are being sent. Further pushes are lost.
const MOST: usize = 10_000;
/// The most pushes of one tenant that wait or are being sent.
const OF_A_TENANT: usize = 1_000;
/// The most concurrent requests of one tenant.
const IN_FLIGHT: usize = 4;

/// The pushes that wait or are being sent.
#[derive(Default)]
pub(super) struct Waiting(Mutex<Taken>);

#[derive(Default)]
struct Taken {
    all: usize,
    tenants: HashMap<String, OfATenant>,
}

struct OfATenant {
    dues: HashSet<Due>,
    in_flight: Arc<Semaphore>,
}

/// A push that waits or is being sent. Dropping it makes room for another one.
pub(super) struct WaitingPush {
    pub(super) due: Due,
    /// Limits the concurrent requests of the push's tenant.
    pub(super) in_flight: Arc<Semaphore>,
    waiting: Arc<Waiting>,
}

impl Waiting {
    /// Adds the push. Returns `None` if an equal push already waits or is being sent.
    ///
    /// # Errors
    /// Too many pushes wait.
    pub(super) fn place(self: &Arc<Self>, due: Due) -> Result<Option<WaitingPush>, TooMany> {
        let mut taken = self.0.lock();
        let known = taken.tenants.get(&due.tenant_id).map(|own| &own.dues);
        if known.is_some_and(|dues| dues.contains(&due)) {
            return Ok(None);
        }
        if taken.all >= MOST || known.is_some_and(|dues| dues.len() >= OF_A_TENANT) {
            return Err(TooMany);
        }
        taken.all += 1;
        let own = taken.tenants.entry(due.tenant_id.clone()).or_insert_with(|| OfATenant {
            dues: HashSet::new(),
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT)),
        });
        own.dues.insert(due.clone());
        let in_flight = Arc::clone(&own.in_flight);
        Ok(Some(WaitingPush { due, in_flight, waiting: Arc::clone(self) }))
    }
}

/// Too many pushes wait. The new one is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl Drop for WaitingPush {
    fn drop(&mut self) {
        let mut taken = self.waiting.0.lock();
        taken.all -= 1;
        if let Some(own) = taken.tenants.get_mut(&self.due.tenant_id) {
            own.dues.remove(&self.due);
            if own.dues.is_empty() {
                taken.tenants.remove(&self.due.tenant_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(tenant: &str, number: usize) -> Due {
        Due::new(tenant, &format!("svc:push_subscription:{number}"))
    }

    #[test]
    fn one_tenant_leaves_places_to_others() {
        let waiting = Arc::new(Waiting::default());
        let places: Vec<_> =
            (0..OF_A_TENANT).map(|number| waiting.place(due("a", number)).unwrap()).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(waiting.place(due("a", 0)).unwrap().is_none(), "it waits already");
        assert_eq!(waiting.place(due("a", OF_A_TENANT)).err(), Some(TooMany));
        assert!(waiting.place(due("b", 0)).unwrap().is_some());
        drop(places);
        let taken = waiting.0.lock();
        assert_eq!((taken.all, taken.tenants.len()), (0, 0));
    }

    #[test]
    fn a_full_node_keeps_nothing_of_whom_it_refuses() {
        let waiting = Arc::new(Waiting::default());
        let places: Vec<_> = (0..MOST)
            .map(|number| waiting.place(due(&format!("t{}", number % 20), number)).unwrap())
            .collect();
        assert!(places.iter().all(Option::is_some));
        assert_eq!(waiting.place(due("late", 0)).err(), Some(TooMany));
        assert_eq!(waiting.0.lock().tenants.len(), 20);
    }
}
