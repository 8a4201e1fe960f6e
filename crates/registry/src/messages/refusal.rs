//! Why a message was not accepted.

use std::time::Duration;

use authority_webhook::retry::ErrorClass;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// As `MessageChannel.last_error`.
    pub(super) class: String,
    /// Whether another attempt may succeed.
    pub(super) is_temporary: bool,
    /// The least wait before it, if the receiver requested one.
    pub(super) after: Option<Duration>,
}

impl Refusal {
    pub(super) fn permanent(class: &str) -> Self {
        Self { class: class.to_owned(), is_temporary: false, after: None }
    }

    pub(super) fn temporary(class: &str) -> Self {
        Self { class: class.to_owned(), is_temporary: true, after: None }
    }

    pub(super) fn timeout() -> Self {
        Self::temporary(ErrorClass::Timeout.as_str())
    }
}
