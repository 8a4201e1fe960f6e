//! Web Push (RFC 8030): notifies a person's browsers that there are new notifications.
//!
//! A push has no content, is sent at most once and may be lost. The notifications themselves are in
//! the store. `due.rs` finds the recipients by a cursor, `worker.rs` sends the pushes, and
//! `vapid.rs` identifies this installation to push services (RFC 8292). `subscriptions.rs` and
//! `service.rs` implement the API for subscriptions.

mod due;
mod service;
mod subscriptions;
mod vapid;
mod waiting;
mod worker;

use std::sync::Arc;

use authority_keys::Keys;
use authority_model::service::{Service, push_subscription_service};
use authority_process::{clock::Clock, worker::Worker};
use authority_store::Store;

use crate::delivery::Deliveries;
pub use vapid::PushSettings;
use vapid::Vapid;

/// The dependencies and settings of pushes.
pub(crate) struct Parts {
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    pub(crate) keys: Keys,
    pub(crate) deliveries: Deliveries,
    /// `None` if push is off.
    pub(crate) settings: Option<PushSettings>,
}

/// Returns the service of subscriptions, and the sending worker unless push is off.
pub(crate) fn services(parts: Parts) -> (Service, Option<Worker>) {
    let Parts { clock, store, keys, deliveries, settings } = parts;
    let vapid = settings.map(|settings| Arc::new(Vapid::new(settings)));
    let pushing = vapid.clone().map(|vapid| {
        worker::worker(worker::Sender::new(worker::Parts {
            clock: clock.clone(),
            store: store.clone(),
            keys: keys.clone(),
            deliveries: deliveries.clone(),
            vapid,
        }))
    });
    let handlers = service::PushSubscriptionHandlers { clock, store, keys, deliveries, vapid };
    (push_subscription_service(Arc::new(handlers)), pushing)
}
