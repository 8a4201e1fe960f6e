//! The consultant programme as tenants and the public use it. A tenant sees its consultants, links
//! and brand. Anyone can read a consultant's public entry and use the widgets and the enquiry form.
//! The records themselves are in authority-registry.
//!
//! This crate grants no authority. It writes only enquiries and the counts of anonymous calls.

mod address;
mod brand;
mod counter;
mod directory;
mod entry;
mod limits;
mod programme;
mod public_lead;
mod sweep;
mod tenant;

use std::sync::Arc;

use authority_keys::Keys;
use authority_model::service::{self, Service};
use authority_process::{clock::Clock, worker::Worker};
use authority_store::Store;

use address::AddressCodes;
pub use brand::Brand;
use counter::LeadCounter;
pub use limits::RATE_LIMITS;
pub use programme::Programme;
use programme::{Inner, MOST_ANONYMOUS};
pub use public_lead::BRAND_SOURCE;
use tokio::sync::Semaphore;

/// The dependencies of the services.
pub struct Parts {
    pub store: Store,
    pub keys: Keys,
    pub clock: Clock,
    /// The URL at which clients reach the service, without a trailing `/`.
    pub public_url: String,
}

impl Programme {
    pub fn new(parts: Parts) -> Self {
        let Parts { store, keys, clock, public_url } = parts;
        let addresses = AddressCodes::new(store.clone(), keys.clone(), clock.clone());
        let (counter, turns) = (LeadCounter::default(), Semaphore::new(MOST_ANONYMOUS));
        Self(Arc::new(Inner { store, keys, clock, public_url, addresses, counter, turns }))
    }

    /// The services, for the router.
    pub fn services(&self) -> [Service; 3] {
        [
            service::tenant_programme_service(Arc::new(self.clone())),
            service::consultant_directory_service(Arc::new(self.clone())),
            service::public_lead_service(Arc::new(self.clone())),
        ]
    }

    /// The background worker.
    pub fn worker(&self) -> Worker {
        sweep::worker(self.0.store.clone(), self.0.clock.clone())
    }
}
