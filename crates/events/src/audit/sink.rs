//! The sinks of audit streams.

use std::io::{self, Write};

use authority_api::error::without_secrets;
use authority_ids::TenantId;
use bytes::Bytes;

use super::nats::{self, Nats};
use crate::delivery::Deliveries;

/// An event or a checkpoint as bytes. Each attempt to send the message uses the same id.
pub(super) struct Message<'a> {
    pub(super) id: &'a str,
    pub(super) body: &'a Bytes,
    pub(super) kind: MessageKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    Event,
    Checkpoint,
}

/// The destination of a stream's messages.
pub(super) enum Sink<'a> {
    /// Writes each message as a line.
    Stdout,
    Nats {
        nats: &'a Nats,
        subject: &'a str,
        tenant_id: &'a TenantId,
    },
    /// Sends each message as a request, signed with the suite `rfc9421`.
    Webhook {
        deliveries: &'a Deliveries,
        url: &'a str,
        stream_id: &'a str,
        tenant_id: &'a TenantId,
    },
}

/// Why a message was not accepted.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot write to the standard output: {0}")]
    Stdout(#[from] io::Error),
    #[error(transparent)]
    Nats(#[from] nats::Error),
    #[error("the webhook did not take it: {0}")]
    Webhook(String),
    #[error("it may not be sent now")]
    Stopped,
}

/// Returns the subject of a tenant's checkpoints.
///
/// It is the stream's subject plus `.checkpoint.` and the tenant's slug, because streams of several
/// tenants may share a subject.
pub(super) fn checkpoint_subject(subject: &str, tenant_id: &TenantId) -> String {
    format!("{subject}.checkpoint.{}", tenant_id.slug())
}

/// The most characters of an error in a stream's record.
const SHOWN: usize = 300;

impl Error {
    /// Returns the error for the stream's record.
    ///
    /// It omits details for operators, such as addresses and files of the installation.
    pub(super) fn shown(&self) -> String {
        let text = match self {
            Self::Nats(error) => error.shown(),
            Self::Stdout(error) => format!("cannot write to the standard output: {}", error.kind()),
            other => other.to_string(),
        };
        without_secrets(text).chars().take(SHOWN).collect()
    }
}

impl Sink<'_> {
    /// Sends a message and returns when the sink has accepted it.
    ///
    /// `may_send` is called right before sending.
    pub(super) async fn send(
        &self,
        message: Message<'_>,
        may_send: impl Future<Output = bool>,
    ) -> Result<(), Error> {
        if let Self::Webhook { deliveries, url, stream_id, tenant_id } = self {
            let (from, message) = ((*stream_id, *tenant_id, *url), (message.id, message.body));
            // `may_send` is called after connecting, because connecting may take a while.
            let sent = deliveries.send_copy(from, message, may_send).await;
            return sent.ok_or(Error::Stopped)?.map_err(Error::Webhook);
        }
        if !may_send.await {
            return Err(Error::Stopped);
        }
        match self {
            Self::Stdout => {
                let line = [message.body, &b"\n"[..]].concat();
                // If the output is a full pipe, writing blocks.
                let written = tokio::task::spawn_blocking(move || {
                    let mut out = io::stdout().lock();
                    out.write_all(&line)?;
                    out.flush()
                });
                Ok(written.await.map_err(io::Error::other)??)
            }
            Self::Nats { nats, subject, tenant_id } => {
                let below = checkpoint_subject(subject, tenant_id);
                let subject = match message.kind {
                    MessageKind::Event => subject,
                    MessageKind::Checkpoint => below.as_str(),
                };
                Ok(nats.publish(subject, message.id, message.body).await?)
            }
            Self::Webhook { .. } => Ok(()),
        }
    }
}
