//! The parts of a receiver's response that are kept.

use std::{fmt::Write, net::IpAddr};

use authority_webhook::destination::AddressKind;
use tokio::time::Instant;

/// The most bytes of a response's body that are read.
pub(in super::super) const READ: usize = 16 * 1024;
/// The most bytes of a response's body that are stored and shown.
const KEPT: usize = 1024;
const MASK: &str = "***";

/// The response to one attempt.
pub(in super::super) struct Received {
    pub(in super::super) status: u16,
    /// The header as it was received.
    pub(in super::super) retry_after: Option<String>,
    /// The body of a failed response, at most [`READ`] bytes; empty for a success.
    pub(super) body: Vec<u8>,
    pub(super) is_whole: bool,
    pub(super) address: IpAddr,
    pub(in super::super) answered_at: Instant,
}

impl Received {
    /// Returns the part of the body that may be shown.
    ///
    /// Only failures from public addresses are shown. A response from an internal network must stay
    /// internal.
    pub(in super::super) fn shown(&self, secrets: &[String]) -> Option<String> {
        let is_failure = !(200..300).contains(&self.status);
        let is_public = AddressKind::of(self.address) == AddressKind::Public;
        (is_failure && is_public && !self.body.is_empty())
            .then(|| body_start(&self.body, self.is_whole, secrets))
    }
}

/// Returns the beginning of a body as text.
///
/// Secrets are masked, and control characters are escaped.
pub(in super::super) fn body_start(body: &[u8], is_whole: bool, secrets: &[String]) -> String {
    let mut text = String::from_utf8_lossy(body).into_owned();
    let mut secrets: Vec<&str> =
        secrets.iter().map(String::as_str).filter(|secret| !secret.is_empty()).collect();
    // Longer secrets are masked first, in case a secret contains another one.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    if !is_whole {
        // A secret that is cut off would not be recognised.
        let partial = secrets.iter().map(|secret| cut_off(&text, secret)).max().unwrap_or(0);
        text.truncate(text.len() - partial);
    }
    for secret in secrets {
        text = text.replace(secret, MASK);
    }
    let mut shown = String::new();
    for c in text.chars() {
        let before = shown.len();
        if is_unsafe(c) {
            // Writing to a String does not fail.
            let _ = write!(shown, "{}", c.escape_unicode());
        } else {
            shown.push(c);
        }
        if shown.len() > KEPT {
            shown.truncate(before);
            break;
        }
    }
    shown
}

/// Returns how many bytes at the end of the text are the beginning of the secret.
fn cut_off(text: &str, secret: &str) -> usize {
    let ends = secret.char_indices().map(|(index, _)| index).skip(1);
    ends.filter(|end| text.ends_with(&secret[..*end])).max().unwrap_or(0)
}

/// Matches control characters, and characters that change the direction or look of other text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}
