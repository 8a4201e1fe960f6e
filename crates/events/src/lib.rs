//! Events: the changes of each tenant, numbered in order, and their readers.
//!
//! When a change is written, a trigger writes its event into the outbox in the same transaction.
//! The [`Sequencer`] numbers the events of the outbox and writes the bytes of each event once. All
//! outgoing data (webhooks, audit streams, pulls, streams) is read by cursors on these events.

mod audit;
mod decided;
pub mod delivery;
mod demand;
mod expiry;
mod feed;
mod follow;
mod log;
mod log_row;
mod lost;
mod notifications;
mod numbering_sql;
mod outbox;
mod outbox_age;
mod page;
mod push;
mod retention;
mod sequencer;
mod service;
mod told;

use std::sync::Arc;

use authority_graph::Graph;
use authority_keys::Keys;
use authority_model::service::{Service, event_service, notification_service};
use authority_process::{clock::Clock, worker::Worker};
use authority_store::Store;
use tokio_util::sync::CancellationToken;

use delivery::Deliveries;

pub use audit::{Nats, NatsSettings, checkpoints_elsewhere};
pub use feed::{EventFeed, Grown};
pub use push::PushSettings;
pub use retention::worker as retention_worker;
pub use sequencer::Sequencer;

/// The dependencies and settings of the event services.
pub struct Parts {
    pub clock: Clock,
    pub store: Store,
    pub graph: Arc<Graph>,
    /// For page tokens and the URLs of push subscriptions.
    pub keys: Keys,
    pub sequencer: Sequencer,
    /// For audit streams.
    pub nats: Arc<Nats>,
    /// For audit streams and pushes.
    pub deliveries: Deliveries,
    /// The settings of Web Push; `None` if it is off.
    pub push: Option<PushSettings>,
    /// Whether the whole installation is under legal hold, which stops deletion by age.
    pub legal_hold: bool,
    /// Ends open streams when the service stops. Otherwise they would delay the shutdown.
    pub shutdown: CancellationToken,
}

/// Creates the event services and their workers.
pub fn services(parts: Parts) -> (Vec<Service>, Vec<Worker>) {
    let Parts {
        clock,
        store,
        graph,
        keys,
        sequencer,
        nats,
        deliveries,
        push,
        legal_hold,
        shutdown,
    } = parts;
    let (feed, feeding) = EventFeed::new(&store);
    let (push_subscriptions, pushing) = push::services(push::Parts {
        clock: clock.clone(),
        store: store.clone(),
        keys: keys.clone(),
        deliveries: deliveries.clone(),
        settings: push,
    });
    let mut workers = vec![
        expiry::worker(store.clone()),
        demand::sweep(store.clone()),
        audit::worker(store.clone(), &feed, nats, deliveries),
        audit::lag_worker(store.clone()),
        notifications::worker(store.clone()),
        outbox_age::worker(store.clone()),
    ];
    workers.extend((!legal_hold).then(|| retention::worker(store.clone())));
    workers.extend([feeding, sequencer.worker()].into_iter().chain(pushing));
    let notifications = notifications::NotificationHandlers {
        store: store.clone(),
        clock: clock.clone(),
        graph: Arc::clone(&graph),
        keys,
        streams: follow::Streams::new("streams of notifications"),
        shutdown: shutdown.clone(),
    };
    let events = service::EventHandlers {
        store,
        clock,
        graph,
        feed,
        streams: follow::Streams::new("streams of events"),
        shutdown,
    };
    let services = vec![
        event_service(Arc::new(events)),
        notification_service(Arc::new(notifications)),
        push_subscriptions,
    ];
    (services, workers)
}
