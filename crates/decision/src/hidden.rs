//! Characters that a reader cannot see, or that change the display of the text around them. They
//! could make a name or amount look like another. The console, command line and receipts show each
//! of them as an escape, to show a responsible person the same text everywhere.

/// Whether a reader cannot see the character or would mistake it for an ordinary space, or whether
/// it changes the display of the characters around it. Line breaks and tabs are visible: texts keep
/// them.
///
/// These are the control and format characters of Unicode, its variation selectors, tags and
/// fillers, and every space except U+0020. An ideographic or a narrow space within a text is also
/// escaped: readers cannot distinguish it from two spaces or from a missing space.
#[must_use]
pub fn is_hidden(letter: char) -> bool {
    (letter.is_control() && !matches!(letter, '\n' | '\t'))
        || is_other_space(letter)
        || is_without_width(letter)
}

/// Whether the character is a blank other than the keyboard's space. Includes U+2800, a Braille
/// pattern without dots.
fn is_other_space(letter: char) -> bool {
    matches!(
        letter,
        '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}'
    )
}

/// Whether the character is a joiner, direction, separator, filler, variation selector, shorthand
/// or notation control, or tag.
fn is_without_width(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{70f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffc}' | '\u{13430}'..='\u{1345f}' | '\u{16fe4}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
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
            ('\u{70f}', '\u{70f}'),
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
