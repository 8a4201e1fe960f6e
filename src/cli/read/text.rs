//! Untrusted text on a terminal: escaped, and measured in columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// `text` without characters that a terminal interprets: control characters, and those that change the
/// text direction, become escapes.
pub(super) fn plain(text: &str) -> String {
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

/// The width in terminal columns.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// At most `most` columns of `text`, shortened in the middle, since ids differ at the end.
pub(super) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let room = most.saturating_sub(1);
    let head = fit(text.chars(), room.div_ceil(2));
    let tail: String = fit(text.chars().rev(), room - width(&head)).chars().rev().collect();
    format!("{head}…{tail}")
}

/// The first letters that fit.
fn fit(letters: impl Iterator<Item = char>, room: usize) -> String {
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used <= room
    };
    letters.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_told_what_to_do() {
        assert_eq!(plain("a\u{1b}[2Jb\r\nc\u{9b}d\u{202e}e"), r"a\u{1b}[2Jb\r\nc\u{9b}d\u{202e}e");
        assert_eq!(plain("Zoë \"支付\""), "Zoë \"支付\"");
    }

    #[test]
    fn a_cut_keeps_both_ends_and_the_width() {
        assert_eq!(cut("abcdefghij", 10), "abcdefghij");
        assert_eq!(cut("abcdefghij", 7), "abc…hij");
        assert_eq!(cut("abcdefghij", 6), "abc…ij");
        // Wide letters are never halved.
        assert_eq!(cut("支付支付支付", 8), "支付…付");
        assert!(width(&cut("支付支付支付", 8)) <= 8);
        assert_eq!(cut("abc", 0), "…");
    }
}
