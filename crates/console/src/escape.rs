//! The escaper of every value that a template shows. Besides HTML's own characters it escapes what cannot be seen:
//! with a character that is invisible, or turns the direction of text, one name or amount could be made to read
//! as another.

use std::fmt::{self, Write};

use askama::filters::Escaper;

/// Writes HTML in which hidden characters stand as `⟨U+202E⟩`.
#[derive(Clone, Copy)]
pub(crate) struct Visible;

impl Escaper for Visible {
    fn write_escaped_str<W: Write>(&self, mut to: W, text: &str) -> fmt::Result {
        for letter in text.chars() {
            match letter {
                '&' => to.write_str("&amp;")?,
                '<' => to.write_str("&lt;")?,
                '>' => to.write_str("&gt;")?,
                '"' => to.write_str("&quot;")?,
                '\'' => to.write_str("&#39;")?,
                hidden if is_hidden(hidden) => write!(to, "⟨U+{:04X}⟩", u32::from(hidden))?,
                plain => to.write_char(plain)?,
            }
        }
        Ok(())
    }
}

/// Whether a reader cannot see the character, or it changes how those around it are shown. Line breaks and tabs
/// are seen: texts keep them.
pub(crate) fn is_hidden(letter: char) -> bool {
    (letter.is_control() && !matches!(letter, '\n' | '\t'))
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        // Spaces that look like another one, or like nothing.
        || matches!(letter, '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{205f}' | '\u{3000}' | '\u{2800}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut shown = String::new();
        Visible.write_escaped_str(&mut shown, text).unwrap();
        shown
    }

    #[test]
    fn html_is_text_and_what_is_hidden_is_seen() {
        for (text, expected) in [
            ("Łódź & co", "Łódź &amp; co"),
            ("\"><script>'", "&quot;&gt;&lt;script&gt;&#39;"),
            ("pay\u{202e}001", "pay⟨U+202E⟩001"),
            ("a\u{200b}b\u{feff}", "a⟨U+200B⟩b⟨U+FEFF⟩"),
            ("a\u{0}\r\nb\tc", "a⟨U+0000⟩⟨U+000D⟩\nb\tc"),
            ("tag\u{e0041}", "tag⟨U+E0041⟩"),
            ("1\u{a0}000", "1⟨U+00A0⟩000"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }
}
