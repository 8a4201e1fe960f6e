//! Messages about requests for approval, for chats and e-mail.
//!
//! [`MessageText`] has the words of a message; `chat.rs` and `mail.rs` write it in the formats of
//! their receivers. Callers and agents choose parts of a message. Every format therefore shows these
//! parts unchanged, without markup, mentions of people or line breaks.

mod chat;
mod mail;
mod text;

pub use chat::{mattermost, slack, teams};
pub use mail::mail_body;
pub use text::{Message, MessageKind, MessageText, visible};
