//! Connections and their limits, and the common parts of all responses. Independent of the
//! service's functions.

mod accept;
mod activity;
mod answer;
mod body;
mod budget;
mod client;
mod cors;
mod entry;
mod full;
mod head;
mod headers;
mod holder;
mod hook;
mod host;
mod listener;
mod ops;
mod protocol;
mod refusal;
mod request_id;
mod response;
mod service;
mod settings;
mod socket;
mod span;
mod stall;
mod stream;
mod tls;

pub use authority_model::surfaces::Surfaces;

pub use accept::prefers_html;
pub use body::BodyTooSlow;
pub use budget::Budget;
pub use client::Peer;
pub use entry::{Answers, Direct, Entry};
pub use headers::Embeddable;
pub use holder::Holder;
pub use listener::serve;
pub use ops::ops;
pub use refusal::{is_grpc, normalize_grpc_web};
pub use request_id::RequestId;
pub use settings::{Bounds, Settings};
pub use tls::{AddressTls, Tls, TlsError};
