//! Characters of a text that a reader cannot see, or that change how the text around them is shown: with them one name
//! or amount could be made to read as another. Console, command line and receipts show each of these as an escape, so
//! that whoever answers for an action reads the same everywhere.

/// Whether a reader cannot see the character, would take it for an ordinary space, or it changes how those around it
/// are shown. Line breaks and tabs are seen: texts keep them.
///
/// It has the control and format characters of Unicode, its variation selectors, tags and fillers, and every space but
/// U+0020. An ideographic or a narrow space within a text is an escape too: nothing tells it from two spaces, or none.
#[must_use]
pub fn is_hidden(letter: char) -> bool {
    (letter.is_control() && !matches!(letter, '\n' | '\t'))
        || is_other_space(letter)
        || is_without_width(letter)
}

/// A blank that is not the space of a keyboard, and U+2800, a pattern of Braille without dots.
fn is_other_space(letter: char) -> bool {
    matches!(
        letter,
        '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}'
    )
}

/// Joiners, directions, separators, fillers, variation selectors, shorthand and notation controls, tags.
fn is_without_width(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffc}' | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_hidden_and_what_is_written_is_not() {
        for (first, last) in [
            ('\u{0}', '\u{8}'),
            ('\u{b}', '\u{1f}'),
            ('\u{7f}', '\u{a0}'),
            ('\u{ad}', '\u{ad}'),
            ('\u{34f}', '\u{34f}'),
            ('\u{61c}', '\u{61c}'),
            ('\u{115f}', '\u{1160}'),
            ('\u{1680}', '\u{1680}'),
            ('\u{17b4}', '\u{17b5}'),
            ('\u{180b}', '\u{180f}'),
            ('\u{2000}', '\u{200f}'),
            ('\u{2028}', '\u{202f}'),
            ('\u{205f}', '\u{206f}'),
            ('\u{2800}', '\u{2800}'),
            ('\u{3000}', '\u{3000}'),
            ('\u{3164}', '\u{3164}'),
            ('\u{fe00}', '\u{fe0f}'),
            ('\u{feff}', '\u{feff}'),
            ('\u{ffa0}', '\u{ffa0}'),
            ('\u{fff9}', '\u{fffc}'),
            ('\u{1bca0}', '\u{1bca3}'),
            ('\u{1d173}', '\u{1d17a}'),
            ('\u{e0000}', '\u{e01ef}'),
        ] {
            for letter in first..=last {
                assert!(is_hidden(letter), "U+{:04X}", u32::from(letter));
            }
        }
        for letter in
            "\n\t aZ9-_.,:;'\"<>&|éßŁ支付かк🙂\u{301}\u{2010}\u{2026}\u{2801}\u{3001}\u{fffd}"
                .chars()
        {
            assert!(!is_hidden(letter), "U+{:04X}", u32::from(letter));
        }
    }
}
