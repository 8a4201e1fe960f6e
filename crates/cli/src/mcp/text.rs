//! Text of servers, for people: hidden characters are shown.

use std::fmt::{self, Display, Formatter};

use authority_decision::hidden::is_hidden;

/// A text with its control, format and bidirectional characters as escapes.
pub(crate) struct Shown<'a>(pub &'a str);

impl Display for Shown<'_> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if c.is_control() || is_hidden(c) {
                write!(to, "\\u{{{:x}}}", u32::from(c))?;
            } else {
                write!(to, "{c}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown() {
        let text = "Reads a file.\u{200b}\u{202e}\u{e0041} \u{1b}[2J é 読";
        let shown = Shown(text).to_string();
        assert_eq!(shown, "Reads a file.\\u{200b}\\u{202e}\\u{e0041} \\u{1b}[2J é 読");
    }
}
