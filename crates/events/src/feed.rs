//! Notifies this node's readers that a tenant's event log has grown.

use std::sync::Arc;

use authority_process::worker::{Context, Worker};
use authority_store::{self as store, Notification, Store};
use tokio::sync::{Mutex, broadcast};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

/// The channel on which the sequencer announces the tenants with new events in their logs.
pub(crate) const CHANNEL: &str = "events";
/// How many notifications are kept for a reader. A reader that misses some reads its log at once.
const KEPT: usize = 1024;

/// A tenant's log has grown. Without a tenant, any log may have grown.
#[derive(Clone, Debug)]
pub struct Grown {
    pub tenant_id: Option<Arc<str>>,
}

/// Notifications of growing logs, from every node that numbers events.
///
/// Notifications may be lost; readers poll as well. Cheap to clone.
#[derive(Clone)]
pub struct EventFeed(broadcast::Sender<Grown>);

impl EventFeed {
    /// Creates the feed and its worker.
    pub fn new(store: &Store) -> (Self, Worker) {
        let notified = store.notifications(CHANNEL);
        let feed = Self(broadcast::Sender::new(KEPT));
        let (sender, notified) = (feed.clone(), Arc::new(Mutex::new(notified)));
        let worker = Worker::endless("event_feed", move |context| {
            let (sender, notified) = (sender.clone(), Arc::clone(&notified));
            async move {
                sender.forward(&mut *notified.lock().await, &context).await;
                Ok::<_, store::Error>(())
            }
        });
        (feed, worker)
    }

    pub fn subscribe(&self) -> broadcast::Receiver<Grown> {
        self.0.subscribe()
    }

    async fn forward(&self, notified: &mut ReceiverStream<Notification>, context: &Context) {
        loop {
            let tenant_id = tokio::select! {
                () = context.stopped() => return,
                next = notified.next() => match next {
                    Some(Notification::Received(tenant_id)) => Some(tenant_id.into()),
                    Some(Notification::Listening) => None,
                    None => return,
                },
            };
            context.succeeded();
            // There may be no readers.
            let _ = self.0.send(Grown { tenant_id });
        }
    }
}

/// Waits until the tenant's log may have grown.
pub(crate) async fn grows(grown: &mut broadcast::Receiver<Grown>, tenant_id: &str) {
    loop {
        match grown.recv().await {
            Ok(Grown { tenant_id: Some(other) }) if *other != *tenant_id => {}
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return,
            // The service stops.
            Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
        }
    }
}
