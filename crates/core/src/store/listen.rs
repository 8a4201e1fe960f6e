//! LISTEN on a connection of its own, which comes back when Postgres does.

use std::time::Duration;

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use futures_util::StreamExt;
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;

use super::{
    Error, Store,
    silence::{PATIENCE, QUIET},
};

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    /// It listens from now on. What was said before, also while it was away, it did not hear:
    /// read everything again.
    Listening,
    /// The payload of a NOTIFY.
    Received(String),
}

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl Store {
    /// Listens until the stream is dropped or the store closed. It never ends by itself; a poll
    /// beside it is wise, since a connection that fell silent is noticed after seconds.
    pub fn listen(&self, channel: &'static str) -> ReceiverStream<Notification> {
        let (heard, stream) = mpsc::channel(64);
        let store = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = heard.closed() => {}
                () = keep_listening(&store, channel, &heard) => {}
            }
        });
        ReceiverStream::new(stream)
    }
}

async fn keep_listening(store: &Store, channel: &str, heard: &mpsc::Sender<Notification>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let connected = timeout(PATIENCE, connect(store, channel)).await;
        let connected = connected
            .unwrap_or_else(|_| Err(Error::Unavailable("no connection in time".to_owned())));
        let lost = match connected {
            Ok(mut db) => {
                pause = FIRST_PAUSE;
                follow(&mut db, heard).await;
                None
            }
            Err(fault) => Some(fault),
        };
        if store.is_closed() {
            return;
        }
        match lost {
            None => tracing::warn!(channel, "the listening connection was lost"),
            Some(fault) => tracing::warn!(channel, %fault, "cannot listen; trying again"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn connect(store: &Store, channel: &str) -> Result<AsyncPgConnection, Error> {
    let mut db = store.address.connect().await?;
    let opening =
        format!("SET application_name = 'agent-authority listener'; LISTEN \"{channel}\"");
    db.batch_execute(&opening).await?;
    Ok(db)
}

/// Until the connection is lost, or answers no longer.
async fn follow(db: &mut AsyncPgConnection, heard: &mpsc::Sender<Notification>) {
    let mut next = Notification::Listening;
    loop {
        if heard.send(next).await.is_err() {
            return;
        }
        let Some(notified) = notified(db).await else { return };
        next = notified;
    }
}

/// The next notification, as long as the connection answers.
async fn notified(db: &mut AsyncPgConnection) -> Option<Notification> {
    loop {
        let next = {
            let mut notifications = std::pin::pin!(db.notifications_stream());
            timeout(QUIET, notifications.next()).await
        };
        if let Ok(next) = next {
            return Some(Notification::Received(next?.ok()?.payload));
        }
        // Nothing was said. Or nobody is there to say it.
        timeout(PATIENCE, db.batch_execute("SELECT 1")).await.ok()?.ok()?;
    }
}
