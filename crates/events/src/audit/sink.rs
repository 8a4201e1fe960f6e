//! What takes the messages of an audit stream.

use std::{
    io::{self, Write},
    sync::Arc,
};

use super::nats::Nats;

/// Below a NATS subject, where checkpoints are published.
const CHECKPOINTS: &str = "checkpoint";

/// A message: an event or a checkpoint, as bytes, with an id that repetitions share.
pub(super) struct Message<'a> {
    pub(super) id: &'a str,
    pub(super) body: &'a [u8],
    pub(super) kind: MessageKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    Event,
    Checkpoint,
}

/// Where a stream's messages go.
pub(super) enum Sink {
    /// A line each.
    Stdout,
    Nats {
        nats: Arc<Nats>,
        subject: String,
    },
}

/// Why a message was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot write to the standard output: {0}")]
    Stdout(#[from] io::Error),
    #[error(transparent)]
    Nats(#[from] super::nats::Error),
}

impl Sink {
    /// Returns once the sink has taken the message.
    pub(super) async fn send(&self, message: Message<'_>) -> Result<(), Error> {
        match self {
            Self::Stdout => {
                let line = [message.body, b"\n"].concat();
                // A pipe may be full.
                let written = tokio::task::spawn_blocking(move || {
                    let mut out = io::stdout().lock();
                    out.write_all(&line)?;
                    out.flush()
                });
                Ok(written.await.map_err(io::Error::other)??)
            }
            Self::Nats { nats, subject } => {
                let subject = match message.kind {
                    MessageKind::Event => subject.clone(),
                    MessageKind::Checkpoint => format!("{subject}.{CHECKPOINTS}"),
                };
                Ok(nats.publish(&subject, message.id, message.body).await?)
            }
        }
    }
}
