//! Messages about requests for approval, by chat and e-mail.
//!
//! A person adds channels, and an admin adds the tenant's chats (`service.rs`, `channel.rs`). The
//! worker finds new requests and their recipients (`found.rs`, `recipients.rs`). It also finds
//! requests that lapsed. Each message is a row that is sent at least once (`outgoing.rs`,
//! `worker.rs`). `compose.rs` writes its text, and `transport.rs` sends it. A message never decides.

mod channel;
mod compose;
mod found;
mod mail;
mod outgoing;
mod owner;
mod recipients;
mod refusal;
mod service;
mod settings;
mod transport;
mod worker;

use std::sync::Arc;

use authority_model::service::{Service, message_channel_service};
use authority_process::worker::Worker;

use crate::flow::registry::Registry;
pub use mail::{MailError, MailSettings, MailTls, Mailer};
pub(crate) use settings::check_defaults;
use transport::Transport;
pub use transport::{ChatPost, Post};

/// The dependencies of messages.
pub struct MessageParts {
    pub registry: Registry,
    /// Posts to the webhook of a chat.
    pub post: Post,
    /// `None` if the installation sends no e-mail.
    pub mailer: Option<Mailer>,
    /// The service's URL, to which messages link.
    pub public_url: String,
}

/// Returns the service of channels, and the worker that sends messages.
pub fn messages(parts: MessageParts) -> (Service, Worker) {
    let MessageParts { registry, post, mailer, public_url } = parts;
    let (keys, clock) = (registry.keys.clone(), registry.clock.clone());
    let transport = Arc::new(Transport { keys, clock, post, mailer });
    let public_url: Arc<str> = public_url.trim_end_matches('/').into();
    let worker = worker::worker(registry.clone(), Arc::clone(&transport), Arc::clone(&public_url));
    let channels = service::MessageChannels { registry, transport, public_url };
    (message_channel_service(Arc::new(channels)), worker)
}
