//! Escapes untrusted text for a terminal.

use std::fmt::Write;

use authority_decision::hidden::is_hidden;
use serde::Serialize;
use serde_json::Value;

/// Shown for a missing value.
pub const NOTHING: &str = "-";

/// Returns `text` with escapes for control characters and hidden characters. A terminal could
/// interpret them, or a person could miss them.
pub fn plain(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut plain, letter| {
        match letter {
            control if control.is_control() => plain.extend(control.escape_default()),
            hidden if is_hidden(hidden) => plain.extend(hidden.escape_unicode()),
            letter => plain.push(letter),
        }
        plain
    })
}

/// Returns a value as indented JSON with the same meaning. Hidden characters in strings are shown
/// as JSON escapes. A person and a program therefore see the same value.
pub(crate) fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    // serde_json itself escapes control characters up to U+001F; line feeds belong to the
    // indentation.
    text.chars().fold(String::with_capacity(text.len()), |mut shown, letter| {
        if letter != '\n' && (letter.is_control() || is_hidden(letter)) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(letter);
        }
        shown
    })
}

/// The text of a member; empty if the member is missing.
pub(crate) fn of<'a>(record: &'a Value, member: &str) -> &'a str {
    record[member].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_terminal_is_not_told_what_to_do() {
        assert_eq!(plain("a\u{1b}[2Jb\r\nc\u{9b}d\u{202e}e"), r"a\u{1b}[2Jb\r\nc\u{9b}d\u{202e}e");
        assert_eq!(plain("Zoë \"支付\""), "Zoë \"支付\"");
        assert_eq!(plain("a\u{200b}\u{e0041}"), r"a\u{200b}\u{e0041}");
        assert_eq!(plain("1\u{a0}2\u{202f}3\u{3000}"), r"1\u{a0}2\u{202f}3\u{3000}");
    }

    #[test]
    fn json_with_escapes_is_the_same_json() {
        let value = json!({"iban": "DE\u{202e}98\u{200b}", "\u{e0041}": ["\u{1b}", "\u{9b}", "é"], "n": 1.50});
        let shown = json(&value);
        assert!(shown.contains(r#""iban": "DE\u202e98\u200b""#), "{shown}");
        assert!(shown.contains(r#""\udb40\udc41": ["#), "{shown}");
        assert!(
            !shown.contains(|c: char| c != '\n' && (c.is_control() || is_hidden(c))),
            "{shown}"
        );
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
    }
}
