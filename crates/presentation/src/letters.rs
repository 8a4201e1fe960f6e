//! Letters of mixed scripts within a word.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Latin,
    Greek,
    Cyrillic,
    /// Other letters that look like Latin ones: of other alphabets, phonetic letters, and the
    /// compatibility forms of plain letters.
    Similar,
}

/// Returns the script of a letter. `None` if it does not look like a letter of another script.
fn script(letter: char) -> Option<Script> {
    match letter {
        'a'..='z' | 'A'..='Z' | '\u{aa}' | '\u{ba}' => Some(Script::Latin),
        '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' if letter.is_alphabetic() => {
            Some(Script::Latin)
        }
        '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' if letter.is_alphabetic() => {
            Some(Script::Greek)
        }
        '\u{400}'..='\u{52f}' | '\u{1c80}'..='\u{1c8a}' | '\u{a640}'..='\u{a69f}'
            if letter.is_alphabetic() =>
        {
            Some(Script::Cyrillic)
        }
        // IPA, Armenian, Cherokee, phonetic extensions, Coptic, Lisu and Deseret.
        '\u{250}'..='\u{2af}'
        | '\u{531}'..='\u{587}'
        | '\u{13a0}'..='\u{13fd}'
        | '\u{1d00}'..='\u{1dbf}'
        | '\u{2c80}'..='\u{2cff}'
        | '\u{a4d0}'..='\u{a4f7}'
        | '\u{ab30}'..='\u{abbf}'
        | '\u{10400}'..='\u{1044f}' => Some(Script::Similar),
        // Mathematical and full-width letters, Roman numerals, and letters in circles.
        _ if letter.is_alphanumeric()
            && letter.nfkc().all(|plain| plain.is_ascii_alphanumeric()) =>
        {
            (!letter.is_ascii()).then_some(Script::Similar)
        }
        _ => None,
    }
}

/// Returns the letters of a text that differ in script from others of their word, each once: Greek,
/// Cyrillic and similar letters of a word with Latin letters, or Greek ones beside Cyrillic ones.
/// Words of one script, and scripts that cannot be mistaken for these, have none.
pub fn mixed_letters(text: &str) -> String {
    let mut mixed = BTreeSet::new();
    for word in text.split(|letter: char| !letter.is_alphanumeric()) {
        let has = |own: Script| word.chars().any(|letter| script(letter) == Some(own));
        let base = if has(Script::Latin) { Script::Latin } else { Script::Cyrillic };
        if has(base) {
            let other = |letter: &char| script(*letter).is_some_and(|own| own != base);
            mixed.extend(word.chars().filter(other));
        }
    }
    mixed.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::mixed_letters;

    #[test]
    fn a_word_of_several_scripts_is_marked_and_names_of_one_script_are_not() {
        for (text, mixed) in [
            ("N\u{43e}rdwind", "\u{43e}"),
            ("DE89\u{410}", "\u{410}"),
            ("\u{3b1}cme \u{430}cme", "\u{3b1}\u{430}"),
            ("\u{3bf}\u{43e}", "\u{3bf}"),
            (
                "Examp\u{217c}e \u{13aa}cme N\u{585}rd \u{ff25}xample",
                "\u{585}\u{13aa}\u{217c}\u{ff25}",
            ),
            ("Nordwind", ""),
            ("Müller & Söhne", ""),
            ("ООО Яндекс (Yandex LLC)", ""),
            ("株式会社ABC商事", ""),
            ("Ελλάδα 24 GmbH", ""),
        ] {
            assert_eq!(mixed_letters(text), mixed, "{text}");
        }
    }
}
