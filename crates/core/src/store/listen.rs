//! LISTEN on a dedicated connection, which reconnects when Postgres is back.

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use futures_util::StreamExt;
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;

use super::{
    Error, Store,
    silence::{PATIENCE, QUIET},
};
use crate::worker::{Context, Worker};

/// An event of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    /// It is listening from now on. Notifications from before, or while it was disconnected, are
    /// lost: read everything again.
    Listening,
    /// The payload of a NOTIFY.
    Received(String),
}

impl Store {
    /// A worker that listens, and a stream of its notifications. Poll as well, since a silent
    /// connection is noticed only after seconds.
    pub fn listen(
        &self,
        name: &'static str,
        channel: &'static str,
    ) -> (Worker, ReceiverStream<Notification>) {
        let (heard, stream) = mpsc::channel(64);
        let store = self.clone();
        let worker = Worker::endless(name, move |context| {
            listen(store.clone(), channel, heard.clone(), context)
        });
        (worker.outlasting_calls(), ReceiverStream::new(stream))
    }
}

/// Listens until the connection is lost; then the supervisor runs it again, which reconnects.
async fn listen(
    store: Store,
    channel: &str,
    heard: mpsc::Sender<Notification>,
    context: Context,
) -> Result<(), Error> {
    let listening = async {
        let late = |_| Err(Error::Unavailable("no connection in time".to_owned()));
        let mut db = timeout(PATIENCE, connect(&store, channel)).await.unwrap_or_else(late)?;
        let mut next = Some(Notification::Listening);
        loop {
            context.succeeded();
            if let Some(next) = next
                && heard.send(next).await.is_err()
            {
                return Err(Error::Internal("no receiver for notifications".to_owned()));
            }
            next = notified(&mut db).await?;
        }
    };
    tokio::select! {
        biased;
        () = context.stopped() => Ok(()),
        lost = listening => lost,
    }
}

async fn connect(store: &Store, channel: &str) -> Result<AsyncPgConnection, Error> {
    let mut db = store.address.connect().await?;
    let opening =
        format!("SET application_name = 'agent-authority listener'; LISTEN \"{channel}\"");
    db.batch_execute(&opening).await?;
    Ok(db)
}

/// The next notification; `None` if there was none and the connection answers.
async fn notified(db: &mut AsyncPgConnection) -> Result<Option<Notification>, Error> {
    let lost = || Error::Unavailable("the listening connection was lost".to_owned());
    let next = {
        let mut notifications = std::pin::pin!(db.notifications_stream());
        timeout(QUIET, notifications.next()).await
    };
    if let Ok(next) = next {
        let heard = next.ok_or_else(lost)?.map_err(|_| lost())?;
        return Ok(Some(Notification::Received(heard.payload)));
    }
    timeout(PATIENCE, db.batch_execute("SELECT 1")).await.map_err(|_| lost())??;
    Ok(None)
}
