//! What takes the messages of an audit stream.

use std::io::{self, Write};

use authority_core::store::{self, Db, Scope, Store};
use bytes::Bytes;

use super::{
    cursor::{self, Claimed},
    nats::{Nats, checkpoint_subject},
};
use crate::delivery::Deliveries;

/// A message: an event or a checkpoint, as bytes, with an id that repetitions share.
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

/// Where a stream's messages go.
pub(super) enum Sink<'a> {
    /// A line each.
    Stdout,
    Nats {
        nats: &'a Nats,
        subject: &'a str,
        tenant_id: &'a str,
    },
    Webhook(WebhookSink<'a>),
}

/// A request each, signed by the suite `rfc9421`.
pub(super) struct WebhookSink<'a> {
    pub(super) store: &'a Store,
    pub(super) deliveries: &'a Deliveries,
    pub(super) stream: &'a Claimed,
    pub(super) url: &'a str,
    pub(super) lease: &'a str,
}

/// Why a message was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot write to the standard output: {0}")]
    Stdout(#[from] io::Error),
    #[error(transparent)]
    Nats(#[from] super::nats::Error),
    #[error("the webhook did not take it: {0}")]
    Webhook(String),
}

impl Sink<'_> {
    /// Returns once the sink has taken the message.
    pub(super) async fn send(&self, message: Message<'_>) -> Result<(), Error> {
        match self {
            Self::Stdout => {
                let line = [message.body, &b"\n"[..]].concat();
                // A pipe may be full.
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
            Self::Webhook(webhook) => webhook.send(message).await.map_err(Error::Webhook),
        }
    }
}

impl WebhookSink<'_> {
    async fn send(&self, message: Message<'_>) -> Result<(), String> {
        let (id, tenant_id) = (&self.stream.stream_id, &self.stream.tenant_id);
        let sent = self.deliveries.send_copy(
            (id, tenant_id, self.url),
            (message.id, message.body),
            self.may_send(),
        );
        sent.await
    }

    /// Asked right before sending: a sealed stream sends nothing more.
    async fn may_send(&self) -> bool {
        let (id, lease) = (self.stream.stream_id.clone(), self.lease.to_owned());
        let check = async move |db: &mut Db| {
            Ok::<_, store::Error>(cursor::may_send(db, &id, &lease).await?)
        };
        self.store.read_tx(&Scope::service(), check).await.unwrap_or(false)
    }
}
