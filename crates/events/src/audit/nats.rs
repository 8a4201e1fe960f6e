//! NATS JetStream. A message counts once a stream has stored it.

use std::{path::PathBuf, time::Duration};

use async_nats::{
    Client, ConnectOptions,
    jetstream::{self, context::PublishErrorKind},
};
use tokio::{sync::Mutex, time::timeout};

/// How long a stream may take to store a message.
const ACKNOWLEDGED: Duration = Duration::from_secs(5);

/// Where NATS is.
#[derive(Clone, Debug)]
pub struct NatsSettings {
    /// For example `nats://nats.example.org:4222`, or `tls://…`.
    pub url: String,
    /// A file with credentials, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
}

/// Publishes to JetStream. It connects when there is something to publish.
pub struct Nats {
    settings: Option<NatsSettings>,
    client: Mutex<Option<Client>>,
}

/// Why a message was not stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("no NATS server is configured; set `nats.url`")]
    NotConfigured,
    #[error("cannot connect to NATS: {0}")]
    Connect(String),
    #[error("no JetStream stream takes the subject `{0}`")]
    NoStream(String),
    #[error("NATS did not store the message: {0}")]
    NotStored(String),
}

impl Nats {
    /// Without settings every publication fails.
    pub fn new(settings: Option<NatsSettings>) -> Self {
        Self { settings, client: Mutex::default() }
    }

    /// Returns once the message is stored. One with an id that the stream has stored a short time ago is not
    /// stored again.
    pub(super) async fn publish(&self, subject: &str, id: &str, body: &[u8]) -> Result<(), Error> {
        let context = jetstream::new(self.client().await?);
        let mut headers = async_nats::HeaderMap::new();
        headers.insert(async_nats::header::NATS_MESSAGE_ID, id);
        let stored = async {
            let sent =
                context.publish_with_headers(subject.to_owned(), headers, body.to_vec().into());
            sent.await?.await
        };
        match timeout(ACKNOWLEDGED, stored).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if error.kind() == PublishErrorKind::StreamNotFound => {
                Err(Error::NoStream(subject.to_owned()))
            }
            Ok(Err(error)) => Err(Error::NotStored(error.to_string())),
            Err(_) => Err(Error::NotStored("no answer in 5 s".to_owned())),
        }
    }

    async fn client(&self) -> Result<Client, Error> {
        let settings = self.settings.as_ref().ok_or(Error::NotConfigured)?;
        let mut held = self.client.lock().await;
        if let Some(client) = &*held {
            return Ok(client.clone());
        }
        let options = match &settings.credentials {
            Some(file) => {
                let read = ConnectOptions::with_credentials_file(file).await;
                read.map_err(|error| Error::Connect(error.to_string()))?
            }
            None => ConnectOptions::new(),
        };
        let options = options.name("agent-authority").connection_timeout(ACKNOWLEDGED);
        let client = options.connect(&settings.url).await;
        let client = client.map_err(|error| Error::Connect(error.to_string()))?;
        Ok(held.insert(client).clone())
    }
}
