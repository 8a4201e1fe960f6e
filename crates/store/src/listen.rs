//! LISTEN on a dedicated connection. It reconnects when Postgres is available again.

use futures_util::StreamExt;
use tokio::{sync::mpsc, time::timeout};
use tokio_postgres::{AsyncMessage, Client};
use tokio_stream::wrappers::ReceiverStream;

use super::{
    error::Error,
    fault::with_source,
    pool::Store,
    session,
    silence::{PATIENCE, QUIET},
};
use authority_process::worker::{Context, Worker};

/// An event of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    /// The listener is now listening. Earlier notifications, and those during a disconnection, are
    /// lost: read everything again.
    Listening,
    /// The payload of a NOTIFY.
    Received(String),
}

impl Store {
    /// Returns a worker that listens, and a stream of its notifications.
    ///
    /// Poll as well: a silent connection is only noticed after some seconds.
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

/// Listens until the connection is lost. The supervisor then runs it again, which reconnects.
async fn listen(
    store: Store,
    channel: &str,
    heard: mpsc::Sender<Notification>,
    context: Context,
) -> Result<(), Error> {
    let listening = async {
        let late = |_| Err(Error::Unavailable("no connection in time".to_owned()));
        let mut listener =
            timeout(PATIENCE, connect(&store, channel)).await.unwrap_or_else(late)?;
        let mut next = Some(Notification::Listening);
        loop {
            context.succeeded();
            if let Some(next) = next
                && heard.send(next).await.is_err()
            {
                // The receivers have stopped: the service is stopping.
                drop(listener);
                context.stopped().await;
                return Ok(());
            }
            next = listener.notified().await?;
        }
    };
    tokio::select! {
        biased;
        () = context.stopped() => Ok(()),
        lost = listening => lost,
    }
}

/// A listening connection, and the messages it receives.
struct Listener {
    client: Client,
    heard: mpsc::UnboundedReceiver<Result<AsyncMessage, tokio_postgres::Error>>,
}

async fn connect(store: &Store, channel: &str) -> Result<Listener, Error> {
    let dialled = store.address.dial().await;
    let (client, mut messages) =
        dialled.map_err(|fault| Error::Unavailable(fault.to_string()))?.messages();
    let (sender, heard) = mpsc::unbounded_channel();
    // The task ends with its client.
    tokio::spawn(async move {
        while let Some(message) = messages.next().await {
            // The receiver ends together with the client.
            let _ = sender.send(message);
        }
    });
    let opening = format!(
        "SET application_name = 'agent-authority listener'; {}; LISTEN \"{channel}\"",
        session::checked("")
    );
    client.batch_execute(&opening).await.map_err(|error| lost(&error))?;
    Ok(Listener { client, heard })
}

fn lost(error: &tokio_postgres::Error) -> Error {
    Error::Unavailable(with_source(error))
}

impl Listener {
    /// Returns the next notification; `None` if there was none and the connection still responds.
    async fn notified(&mut self) -> Result<Option<Notification>, Error> {
        let closed = || Error::Unavailable("the listening connection was lost".to_owned());
        loop {
            match timeout(QUIET, self.heard.recv()).await {
                Ok(Some(Ok(AsyncMessage::Notification(heard)))) => {
                    return Ok(Some(Notification::Received(heard.payload().to_owned())));
                }
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => return Err(lost(&error)),
                Ok(None) => return Err(closed()),
                Err(_) => break,
            }
        }
        let answer = timeout(PATIENCE, self.client.batch_execute("SELECT 1")).await;
        answer.map_err(|_| closed())?.map_err(|error| lost(&error))?;
        Ok(None)
    }
}
