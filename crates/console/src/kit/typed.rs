//! Compares a person's input with the text that the page had: to find unchanged fields, and to
//! check a name that was typed to confirm.
//!
//! Browsers change line ends: a `<textarea>` shows each as one line feed and sends each as two
//! characters, and an `<input>` drops them. These are not a person's changes.

use crate::kit::escape;

/// Whether a field was left unchanged: `given` is its original text, and `sent` is the browser's.
pub(crate) fn is_same(given: &str, sent: &str) -> bool {
    with_line_feeds(given) == with_line_feeds(sent) || on_one_line(given) == sent
}

/// The text to store for a field that contained `given`: `given` itself if the person left it
/// unchanged, otherwise their text with the line ends of `given`.
pub(crate) fn kept(given: &str, sent: &str) -> String {
    let written = with_line_feeds(sent);
    if written == with_line_feeds(given) {
        return given.to_owned();
    }
    let pairs = given.matches("\r\n").count();
    let has_pairs_alone = pairs > 0 && pairs == given.matches('\n').count();
    if has_pairs_alone { written.replace('\n', "\r\n") } else { written }
}

fn with_line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn on_one_line(text: &str) -> String {
    text.replace(['\r', '\n'], "")
}

/// A browser's text of several lines, as the field shows it again. The line ends are the browser's
/// own.
pub(crate) fn as_written(sent: &str) -> String {
    sent.replace("\r\n", "\n")
}

/// Whether a typed text is the name that a page shows. Letter case is ignored, since phones add
/// capitals. All kinds of spaces are equal, since keyboards have only one.
pub(crate) fn is_named(name: &str, typed: &str) -> bool {
    let shown = |text: &str| escape::shown(text.trim()).to_lowercase();
    let spaced = |text: &str| {
        let letters = text.trim().chars();
        shown(&letters.map(|l| if l.is_whitespace() { ' ' } else { l }).collect::<String>())
    };
    shown(name) == shown(typed) || spaced(name) == spaced(typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_typed_as_it_is_shown() {
        for (name, typed, is_it) in [
            ("invoice-bot", " Invoice-bot ", true),
            ("invoice-bot", "invoice-bo", false),
            ("invoice-bot", "", false),
            ("Card\u{a0}payments", "Card payments", true),
            ("Card\u{a0}payments", "card⟨U+00A0⟩payments", true),
            ("Card\u{a0}payments", "Card\u{a0}payments", true),
            ("pay\u{200b}ments", "payments", false),
            ("pay\u{200b}ments", "pay⟨u+200b⟩ments", true),
        ] {
            assert_eq!(is_named(name, typed), is_it, "{name:?} {typed:?}");
        }
    }

    #[test]
    fn a_browsers_line_ends_are_not_shown_as_hidden() {
        let shown = as_written("a\r\nb\rc\n");
        assert_eq!(escape::hidden_in(&shown).as_deref(), Some("⟨U+000D⟩"), "{shown:?}");
        assert_eq!(escape::hidden_in(&as_written("a\r\nb")), None);
    }

    #[test]
    fn a_text_that_was_left_is_what_it_was() {
        for (given, sent, expected) in [
            ("a\r\nb\rc\nd", "a\r\nb\r\nc\r\nd", "a\r\nb\rc\nd"),
            ("a\r\nb", "a\r\nb\r\nc", "a\r\nb\r\nc"),
            ("a\nb", "a\r\nb\r\nc", "a\nb\nc"),
            ("", "a\r\nb", "a\nb"),
            ("1\u{a0}000", "1\u{a0}000", "1\u{a0}000"),
        ] {
            assert_eq!(kept(given, sent), expected, "{given:?}");
        }
        assert!(is_same("a\r\nb", "ab") && is_same(" a ", " a ") && !is_same("a b", "a\u{a0}b"));
    }
}
