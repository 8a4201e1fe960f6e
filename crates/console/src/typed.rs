//! What a form's field sends back of a text that it was given. A browser changes line ends: a `<textarea>` has each as
//! one line feed and sends each as two characters, and an `<input>` drops them. None of that is a person's change.

/// Whether a field that was given one text, and sent the other, was left as it was.
pub(crate) fn is_same(given: &str, sent: &str) -> bool {
    with_line_feeds(given) == with_line_feeds(sent) || on_one_line(given) == sent
}

/// The text that a person wrote in a field that had `given`: exactly that if they left it, or else with its line ends.
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

#[cfg(test)]
mod tests {
    use super::*;

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
