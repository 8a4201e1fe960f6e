//! NATS `JetStream`. A message counts once a stream has stored it.

use std::{fs, path::PathBuf, time::Duration};

use async_nats::{
    Client, ConnectOptions,
    jetstream::{
        self,
        context::{GetStreamByNameErrorKind, PublishErrorKind},
        stream::LastRawMessageErrorKind,
    },
};
use bytes::Bytes;
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

impl NatsSettings {
    /// Settings with a file of credentials that can be read now.
    ///
    /// # Errors
    /// Why it cannot, with the file's path and nothing of its content.
    pub fn new(url: String, credentials: Option<PathBuf>) -> Result<Self, String> {
        if let Some(file) = &credentials {
            let unfit = |why: String| format!("`{}` {why}", file.display());
            let text = fs::read_to_string(file)
                .map_err(|error| unfit(format!("cannot be read: {error}")))?;
            ConnectOptions::with_credentials(&text).map_err(|_| {
                unfit("has no JWT and seed of a user; make it with `nsc generate creds`".to_owned())
            })?;
        }
        Ok(Self { url, credentials })
    }
}

/// Publishes to `JetStream`. It connects when there is something to publish.
pub struct Nats {
    settings: Option<NatsSettings>,
    client: Mutex<Option<Client>>,
}

/// Why a message was not stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("no NATS server is configured; set `nats.url`")]
    NotConfigured,
    #[error("cannot connect to NATS: {error}")]
    Connect {
        /// Without addresses and files.
        kind: String,
        error: String,
    },
    #[error("no JetStream stream takes the subject `{0}`")]
    NoStream(String),
    #[error("NATS did not store the message: {0}")]
    NotStored(String),
    #[error("NATS cannot be read: {0}")]
    NotRead(String),
}

impl Error {
    /// For the stream's record, without addresses and files.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Connect { kind, .. } => format!("cannot connect to NATS: {kind}"),
            other => other.to_string(),
        }
    }
}

impl Nats {
    /// Without settings every publication fails.
    pub fn new(settings: Option<NatsSettings>) -> Self {
        Self { settings, client: Mutex::default() }
    }

    /// Returns once the message is stored. One with an id that was stored below this subject a short time ago is
    /// not stored again. `JetStream` compares ids in a whole stream, which may take several subjects: without the
    /// subject in it, the id of another audit stream's copy would leave this one out.
    pub(super) async fn publish(&self, subject: &str, id: &str, body: &Bytes) -> Result<(), Error> {
        let context = jetstream::new(self.client().await?);
        let mut headers = async_nats::HeaderMap::new();
        headers.insert(async_nats::header::NATS_MESSAGE_ID, format!("{id}@{subject}").as_str());
        let stored = async {
            let sent = context.publish_with_headers(subject.to_owned(), headers, body.clone());
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

    /// Whether there is a server at all.
    pub(super) fn is_configured(&self) -> bool {
        self.settings.is_some()
    }

    /// The last message of a subject; `None` if there is none, or no stream for it.
    pub(super) async fn last(&self, subject: &str) -> Result<Option<Bytes>, Error> {
        let context = jetstream::new(self.client().await?);
        let read = async {
            let name = match context.stream_by_subject(subject).await {
                Ok(name) => name,
                Err(error) if error.kind() == GetStreamByNameErrorKind::NotFound => {
                    return Ok(None);
                }
                Err(error) => return Err(error.to_string()),
            };
            let stream = context.get_stream(name).await.map_err(|error| error.to_string())?;
            match stream.get_last_raw_message_by_subject(subject).await {
                Ok(message) => Ok(Some(message.payload)),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
                Err(error) => Err(error.to_string()),
            }
        };
        let read = timeout(ACKNOWLEDGED, read).await;
        read.unwrap_or_else(|_| Err("no answer in 5 s".to_owned())).map_err(Error::NotRead)
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
                let kind = "the credentials cannot be read".to_owned();
                read.map_err(|error| Error::Connect { kind, error: error.to_string() })?
            }
            None => ConnectOptions::new(),
        };
        let options = options.name("agent-authority").connection_timeout(ACKNOWLEDGED);
        let client = options.connect(&settings.url).await;
        let client = client.map_err(|error| Error::Connect {
            kind: error.kind().to_string(),
            error: error.to_string(),
        })?;
        Ok(held.insert(client).clone())
    }
}
