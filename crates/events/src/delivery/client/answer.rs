//! What is kept of an answer.

use std::{fmt::Write, net::IpAddr};

use authority_webhook::destination::AddressKind;
use tokio::time::Instant;

/// Bytes of an answer that are read.
pub(in super::super) const READ: usize = 16 * 1024;
/// Bytes of an answer that are kept.
const KEPT: usize = 1024;
const MASK: &str = "***";

/// The answer to one attempt.
pub(in super::super) struct Received {
    pub(in super::super) status: u16,
    /// The header as it came.
    pub(in super::super) retry_after: Option<String>,
    /// The body of a failure: at most [`READ`] bytes.
    pub(super) body: Vec<u8>,
    pub(super) is_whole: bool,
    pub(super) address: IpAddr,
    pub(in super::super) answered_at: Instant,
}

impl Received {
    /// What may be shown of the body: of a failure, and where everybody could read it. An answer from inside
    /// a network is nobody's business but its own.
    pub(in super::super) fn shown(&self, secrets: &[String]) -> Option<String> {
        let is_failure = !(200..300).contains(&self.status);
        let is_public = AddressKind::of(self.address) == AddressKind::Public;
        (is_failure && is_public && !self.body.is_empty())
            .then(|| body_start(&self.body, self.is_whole, secrets))
    }
}

/// The beginning of a body as text: secrets masked, control characters escaped.
pub(in super::super) fn body_start(body: &[u8], is_whole: bool, secrets: &[String]) -> String {
    let mut text = String::from_utf8_lossy(body).into_owned();
    let mut secrets: Vec<&str> =
        secrets.iter().map(String::as_str).filter(|secret| !secret.is_empty()).collect();
    // A secret that contains another is masked as a whole.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    if !is_whole {
        // The rest of a secret that was cut off would not be recognised.
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

/// How many bytes at the text's end begin the secret.
fn cut_off(text: &str, secret: &str) -> usize {
    let ends = secret.char_indices().map(|(index, _)| index).skip(1);
    ends.filter(|end| text.ends_with(&secret[..*end])).max().unwrap_or(0)
}

/// Control characters, and those that change the direction or the look of what is around them.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}
