//! The escaper for every value in a template. It escapes HTML's own characters, and also invisible
//! characters and characters that turn the direction of text, since these could make one name or
//! amount look like another. The value of a form's field is sent back unchanged, and is therefore
//! escaped as HTML only. Its invisible characters are listed next to the field.

use std::{
    collections::BTreeSet,
    fmt::{self, Write},
};

use askama::filters::Escaper;
use authority_decision::hidden::is_hidden;

/// Writes HTML in which hidden characters appear as `⟨U+202E⟩`.
#[derive(Clone, Copy)]
pub(crate) struct Visible;

impl Escaper for Visible {
    fn write_escaped_str<W: Write>(&self, to: W, text: &str) -> fmt::Result {
        write_html(to, &shown(text))
    }
}

/// Writes HTML that a browser reads as exactly the text, for values that a form sends back.
#[derive(Clone, Copy)]
pub(crate) struct FieldValue;

impl Escaper for FieldValue {
    fn write_escaped_str<W: Write>(&self, to: W, text: &str) -> fmt::Result {
        write_html(to, text)
    }
}

fn write_html(mut to: impl Write, text: &str) -> fmt::Result {
    for letter in text.chars() {
        match letter {
            '&' => to.write_str("&amp;")?,
            '<' => to.write_str("&lt;")?,
            '>' => to.write_str("&gt;")?,
            '"' => to.write_str("&quot;")?,
            '\'' => to.write_str("&#39;")?,
            // A browser would read a plain carriage return as a line feed.
            '\r' => to.write_str("&#13;")?,
            _ => to.write_char(letter)?,
        }
    }
    Ok(())
}

fn code(hidden: char) -> String {
    format!("⟨U+{:04X}⟩", u32::from(hidden))
}

/// The text as a page shows it.
pub(crate) fn shown(text: &str) -> String {
    text.chars().fold(String::new(), |mut shown, letter| {
        if is_hidden(letter) {
            shown.push_str(&code(letter));
        } else {
            shown.push(letter);
        }
        shown
    })
}

/// Returns the invisible characters of a text, each once, as a page shows them. `None` if there are none.
pub(crate) fn hidden_in(text: &str) -> Option<String> {
    let hidden: BTreeSet<char> = text.chars().filter(|letter| is_hidden(*letter)).collect();
    let codes: Vec<String> = hidden.into_iter().map(code).collect();
    (!codes.is_empty()).then(|| codes.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(escaper: impl Escaper, text: &str) -> String {
        let mut escaped = String::new();
        escaper.write_escaped_str(&mut escaped, text).unwrap();
        escaped
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
            ("1\u{202f}000", "1⟨U+202F⟩000"),
            ("a\u{3000}b", "a⟨U+3000⟩b"),
        ] {
            assert_eq!(escaped(Visible, text), expected);
        }
    }
    #[test]
    fn a_value_is_what_it_was() {
        for (text, expected) in [
            ("\"><script>'&", "&quot;&gt;&lt;script&gt;&#39;&amp;"),
            ("1\u{a0}000 \u{2764}\u{fe0f}", "1\u{a0}000 \u{2764}\u{fe0f}"),
            ("pay\u{202e}001\r\nb", "pay\u{202e}001&#13;\nb"),
        ] {
            assert_eq!(escaped(FieldValue, text), expected);
        }
        assert_eq!(hidden_in("b\r\n\u{a0}a\r\u{a0}").as_deref(), Some("⟨U+000D⟩ ⟨U+00A0⟩"));
        assert_eq!(hidden_in("plain\n\ttext"), None);
    }

    /// Checks the templates: values of fields and displayed values use different escapers.
    #[test]
    fn no_template_shows_a_value_otherwise_than_it_is() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/templates");
        let mut values = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let attributes = text.split(" value=\"").skip(1).map(|rest| (rest, "\""));
            let texts = text.split("<textarea").skip(1).map(|rest| (rest, "</textarea>"));
            for (rest, end) in attributes.chain(texts) {
                // A quote or a tag within an expression does not end a value.
                let value = outside(rest, end);
                let value = if end == "\"" { value } else { value.rsplit('>').next().unwrap() };
                for expression in value.split("{{").skip(1) {
                    let expression = expression.split("}}").next().unwrap();
                    assert!(expression.contains("|escape(\"value\")"), "{path:?}: {expression}");
                    values += 1;
                }
            }
        }
        assert!(values > 40, "{values}");
    }

    /// Returns the text before the first `end` outside of expressions.
    fn outside<'a>(text: &'a str, end: &str) -> &'a str {
        let ends = text.match_indices(end).map(|(at, _)| at);
        let mut whole = ends
            .filter(|at| text[..*at].matches("{{").count() == text[..*at].matches("}}").count());
        &text[..whole.next().unwrap()]
    }
}
