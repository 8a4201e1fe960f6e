//! Untrusted text on a terminal: escaped.

/// Shown for a missing value.
pub(in crate::cli) const NOTHING: &str = "-";

/// `text` without characters that a terminal interprets: control characters, and those that change the
/// text direction, become escapes.
pub(in crate::cli) fn plain(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut plain, letter| {
        match letter {
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                plain.extend(letter.escape_unicode());
            }
            control if control.is_control() => plain.extend(control.escape_default()),
            letter => plain.push(letter),
        }
        plain
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_told_what_to_do() {
        assert_eq!(plain("a\u{1b}[2Jb\r\nc\u{9b}d\u{202e}e"), r"a\u{1b}[2Jb\r\nc\u{9b}d\u{202e}e");
        assert_eq!(plain("Zoë \"支付\""), "Zoë \"支付\"");
    }
}
