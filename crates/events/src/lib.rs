//! Events: what changed, numbered in each tenant's order, and read from there.
//!
//! A change writes its event into the outbox, in its own transaction and by a trigger. The [`Sequencer`]
//! numbers what the outbox holds and writes the event's bytes, once. Everything that leaves the service
//! (webhooks, audit streams, pulls, streams) is a cursor on those.

mod audit;
mod decided;
pub mod delivery;
mod demand;
mod expiry;
mod feed;
mod follow;
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

use authority_core::{clock::Clock, graph::Graph, keys::Keys, store::Store, worker::Worker};
use authority_model::service::{Service, event_service, notification_service};
use tokio_util::sync::CancellationToken;

use delivery::Deliveries;

pub use audit::{Nats, NatsSettings, checkpoints_elsewhere};
pub use feed::{EventFeed, Grown};
pub use push::PushSettings;
pub use retention::worker as retention_worker;
pub use sequencer::Sequencer;

/// The parts of the event service.
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
    /// Web Push for notifications; off if absent.
    pub push: Option<PushSettings>,
    /// Whether the whole installation is under legal hold: nothing is deleted by its age.
    pub legal_hold: bool,
    /// Ends the streams, which would otherwise block the drain.
    pub shutdown: CancellationToken,
}

/// The service of events, and the background work that makes them.
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
    workers.extend(feeding.into_iter().chain(sequencer.workers()).chain(pushing));
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
