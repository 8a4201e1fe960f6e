//! The consultant programme as others than the installation's owner see it: a tenant its consultants, links and
//! brand; anyone the public entry of a consultant, the widgets and the enquiry form. The records themselves are in
//! authority-registry.
//!
//! Nothing here grants anything, and nothing is written but enquiries and the counts of anonymous calls.

mod address;
mod brand;
mod counter;
mod directory;
mod entry;
mod limits;
mod public_lead;
mod sweep;
mod tenant;

use std::{sync::Arc, time::Duration};

use authority_api::error::{ApiError, ErrorCode};
use authority_core::{clock::Clock, keys::Keys, store::Store, worker::Worker};
use authority_model::service::{self, Service};

use address::AddressCodes;
pub use brand::Brand;
use counter::LeadCounter;
pub use limits::RATE_LIMITS;
pub use public_lead::BRAND_SOURCE;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

/// What the services need.
pub struct Parts {
    pub store: Store,
    pub keys: Keys,
    pub clock: Clock,
    /// Where clients reach the service, without a trailing `/`.
    pub public_url: String,
}

/// The programme's services. Cheap to clone.
#[derive(Clone)]
pub struct Programme(Arc<Inner>);

struct Inner {
    store: Store,
    keys: Keys,
    clock: Clock,
    public_url: String,
    addresses: AddressCodes,
    counter: LeadCounter,
    /// Of callers without a credential.
    turns: Semaphore,
}

/// Anonymous callers in the database at one time: they must not take its connections from others.
const MOST_ANONYMOUS: usize = 2;
/// How long one waits for its turn.
const PATIENCE: Duration = Duration::from_secs(2);

impl Programme {
    pub fn new(parts: Parts) -> Self {
        let Parts { store, keys, clock, public_url } = parts;
        let addresses = AddressCodes::new(store.clone(), keys.clone(), clock.clone());
        let (counter, turns) = (LeadCounter::default(), Semaphore::new(MOST_ANONYMOUS));
        Self(Arc::new(Inner { store, keys, clock, public_url, addresses, counter, turns }))
    }

    /// The turn of an anonymous caller, for one query.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        let turn = timeout(PATIENCE, self.0.turns.acquire()).await;
        let turn = turn.ok().and_then(Result::ok);
        turn.ok_or_else(|| ApiError::plain(ErrorCode::Unavailable))
    }

    /// The services, for the router.
    pub fn services(&self) -> [Service; 3] {
        [
            service::tenant_programme_service(Arc::new(self.clone())),
            service::consultant_directory_service(Arc::new(self.clone())),
            service::public_lead_service(Arc::new(self.clone())),
        ]
    }

    /// Its background work.
    pub fn worker(&self) -> Worker {
        sweep::worker(self.0.store.clone(), self.0.clock.clone())
    }
}
