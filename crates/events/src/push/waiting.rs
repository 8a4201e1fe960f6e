//! The pushes that a node has taken up: each once, and of no tenant so many that others wait for it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::due::Due;

/// Pushes of this node that wait or are being sent; more are lost.
const MOST: usize = 10_000;
/// The same of one tenant.
const OF_A_TENANT: usize = 1_000;
/// Requests of one tenant at a time.
const IN_FLIGHT: usize = 4;

/// What waits or is being sent.
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

/// A push among those that wait; it leaves when dropped.
pub(super) struct Place {
    pub(super) due: Due,
    /// Its tenant's share of the requests.
    pub(super) in_flight: Arc<Semaphore>,
    waiting: Arc<Waiting>,
}

impl Waiting {
    /// A place for it, unless one like it waits already.
    ///
    /// # Errors
    /// Too many wait.
    pub(super) fn place(self: &Arc<Self>, due: Due) -> Result<Option<Place>, TooMany> {
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
        Ok(Some(Place { due, in_flight, waiting: Arc::clone(self) }))
    }
}

/// The push is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl Drop for Place {
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
