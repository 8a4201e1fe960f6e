//! Publishes to NATS `JetStream`. A message is published when a `JetStream` stream has stored it.
//!
//! Requests and responses of the `JetStream` API are JSON.

use std::{fs, path::PathBuf, time::Duration};

use async_nats::{Client, ConnectOptions, HeaderMap, RequestErrorKind, header::NATS_MESSAGE_ID};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{sync::Mutex, time::timeout};

/// The time limit for connecting and for storing or reading a message.
const ACKNOWLEDGED: Duration = Duration::from_secs(5);

/// The address and credentials of the NATS server.
#[derive(Clone, Debug)]
pub struct NatsSettings {
    /// For example `nats://nats.example.org:4222`, or `tls://…`.
    pub url: String,
    /// A credentials file, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
}

impl NatsSettings {
    /// Returns settings, after reading the credentials file.
    ///
    /// # Errors
    /// The file cannot be read or has no credentials. The error contains the file's path but not
    /// its content.
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

/// A client of `JetStream`. It connects when the first message is published or read.
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
    /// The error for the stream's record, without addresses and files.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Connect { kind, .. } => format!("cannot connect to NATS: {kind}"),
            other => other.to_string(),
        }
    }
}

impl Nats {
    /// Creates a publisher. Without settings every publication fails.
    pub fn new(settings: Option<NatsSettings>) -> Self {
        Self { settings, client: Mutex::default() }
    }

    /// Publishes a message and returns when it is stored.
    ///
    /// A message is not stored again if its id was stored under this subject a short time ago.
    /// `JetStream` compares ids across a whole stream, which may have several subjects. The
    /// id therefore includes the subject. Otherwise, if two audit streams send the same event to
    /// different subjects, only the first copy would be stored.
    pub(super) async fn publish(&self, subject: &str, id: &str, body: &Bytes) -> Result<(), Error> {
        let client = self.client().await?;
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, format!("{id}@{subject}").as_str());
        let stored = client.request_with_headers(subject.to_owned(), headers, body.clone());
        match timeout(ACKNOWLEDGED, stored).await {
            Ok(Ok(message)) => match read::<Stored>(&message.payload) {
                Ok(Response::Done(_)) => Ok(()),
                Ok(Response::Refused { error }) => Err(Error::NotStored(error.description)),
                Err(error) => Err(Error::NotStored(error)),
            },
            Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => {
                Err(Error::NoStream(subject.to_owned()))
            }
            Ok(Err(error)) => Err(Error::NotStored(error.to_string())),
            Err(_) => Err(Error::NotStored("no answer in 5 s".to_owned())),
        }
    }

    /// Whether a NATS server is configured.
    pub(super) fn is_configured(&self) -> bool {
        self.settings.is_some()
    }

    /// Returns the last message of a subject; `None` if it has no message or no stream.
    pub(super) async fn last(&self, subject: &str) -> Result<Option<Bytes>, Error> {
        let client = self.client().await?;
        let read = timeout(ACKNOWLEDGED, last(&client, subject)).await;
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

/// A response of the API.
#[derive(Deserialize)]
#[serde(untagged)]
enum Response<T> {
    Refused { error: Refusal },
    Done(T),
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

impl Refusal {
    /// The `err_code` if a subject has no message.
    const NO_MESSAGE: u64 = 10_037;
}

/// The acknowledgement of a stored message: the stream, and the message's number in it.
#[derive(Deserialize)]
struct Stored {
    #[serde(rename = "stream")]
    _stream: String,
    #[serde(rename = "seq")]
    _number: u64,
}

/// The names of streams; `None` instead of an empty list.
#[derive(Deserialize)]
struct Streams {
    streams: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct StoredMessage {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    /// In base64.
    #[serde(default)]
    data: String,
}

/// Returns the last message of a subject; `None` if it has no message or no stream.
async fn last(client: &Client, subject: &str) -> Result<Option<Bytes>, String> {
    let streams: Response<Streams> =
        ask(client, "STREAM.NAMES", &json!({ "subject": subject })).await?;
    let name = match streams {
        Response::Done(found) => found.streams.and_then(|names| names.into_iter().next()),
        Response::Refused { error } => return Err(error.description),
    };
    let Some(name) = name else { return Ok(None) };
    let last = json!({ "last_by_subj": subject });
    match ask(client, &format!("STREAM.MSG.GET.{name}"), &last).await? {
        Response::Done(StoredMessage { message }) => {
            let data = STANDARD.decode(message.data).map_err(|error| error.to_string())?;
            Ok(Some(data.into()))
        }
        Response::Refused { error } if error.err_code == Refusal::NO_MESSAGE => Ok(None),
        Response::Refused { error } => Err(error.description),
    }
}

async fn ask<T: DeserializeOwned>(
    client: &Client,
    call: &str,
    body: &Value,
) -> Result<Response<T>, String> {
    let response = client.request(format!("$JS.API.{call}"), body.to_string().into()).await;
    read(&response.map_err(|error| error.to_string())?.payload)
}

fn read<T: DeserializeOwned>(response: &[u8]) -> Result<Response<T>, String> {
    serde_json::from_slice(response).map_err(|error| error.to_string())
}
