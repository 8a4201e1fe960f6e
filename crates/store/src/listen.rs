//! LISTEN on one dedicated connection for all channels. It reconnects when Postgres is available
//! again.

use futures_util::StreamExt;
use tokio::{sync::mpsc, time::timeout};
use tokio_postgres::{AsyncMessage, Client};
use tokio_stream::wrappers::ReceiverStream;

use super::{
    error::Error,
    fault::with_source,
    pool::Store,
    receivers::Notification,
    session,
    silence::{PATIENCE, QUIET},
};
use authority_process::worker::{Context, Worker};

impl Store {
    /// Returns the notifications on a channel. The worker of [`Self::listener`] sends them.
    ///
    /// Poll as well: a silent connection is only noticed after some seconds.
    pub fn notifications(&self, channel: &'static str) -> ReceiverStream<Notification> {
        ReceiverStream::new(self.receivers.add(channel))
    }

    /// Returns the worker that listens on the channels of all [`Self::notifications`] of this store
    /// and its clones. Run it once, after they were requested.
    pub fn listener(&self) -> Worker {
        let store = self.clone();
        let worker = Worker::endless("listener", move |context| listen(store.clone(), context));
        worker.outlasting_calls()
    }
}

/// Listens until the connection is lost. The supervisor then runs it again, which reconnects.
async fn listen(store: Store, context: Context) -> Result<(), Error> {
    let listening = async {
        let late = |_| Err(Error::Unavailable("no connection in time".to_owned()));
        let mut listener = timeout(PATIENCE, connect(&store)).await.unwrap_or_else(late)?;
        store.receivers.all_listen();
        loop {
            context.succeeded();
            match listener.notified().await? {
                Some((channel, payload)) => store.receivers.send(&channel, &payload),
                None => store.receivers.repeat_missed(),
            }
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

async fn connect(store: &Store) -> Result<Listener, Error> {
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
        "SET application_name = 'agent-authority listener'; {}; {}",
        session::checked(""),
        store.receivers.sql()
    );
    client.batch_execute(&opening).await.map_err(|error| lost(&error))?;
    Ok(Listener { client, heard })
}

fn lost(error: &tokio_postgres::Error) -> Error {
    Error::Unavailable(with_source(error))
}

impl Listener {
    /// Returns the channel and the payload of the next notification; `None` if there was none and
    /// the connection still responds.
    async fn notified(&mut self) -> Result<Option<(String, String)>, Error> {
        let closed = || Error::Unavailable("the listening connection was lost".to_owned());
        loop {
            match timeout(QUIET, self.heard.recv()).await {
                Ok(Some(Ok(AsyncMessage::Notification(heard)))) => {
                    return Ok(Some((heard.channel().to_owned(), heard.payload().to_owned())));
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
