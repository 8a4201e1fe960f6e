//! Shortens client texts in errors. The result is long enough to find the text in the request.

use std::borrow::Cow;

/// Shortens a text to at most `most` characters: its beginning, a mark, and its end. Both ends
/// together identify a text better than the beginning alone.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    // A text has at least as many bytes as characters.
    if text.len() <= most || text.chars().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    let (head, tail) = (most.div_ceil(2).saturating_sub(1), most / 2);
    let end = text.char_indices().nth(head).map_or(text.len(), |(at, _)| at);
    let last = tail.checked_sub(1).and_then(|place| text.char_indices().nth_back(place));
    let start = last.map_or(text.len(), |(at, _)| at);
    let part = |range| text.get(range).unwrap_or_default();
    Cow::Owned(format!("{}…{}", part(0..end), part(start..text.len())))
}

/// Returns the length of a text in JSON, in bytes.
pub fn json_len(text: &str) -> usize {
    let escaped = |byte: &u8| match byte {
        b'"' | b'\\' => 2,
        0..=0x1f => 6,
        _ => 1,
    };
    text.as_bytes().iter().map(escaped).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_stay() {
        for (text, most, kept) in [
            ("", 5, ""),
            ("abcde", 5, "abcde"),
            ("äöüßé", 5, "äöüßé"),
            ("abcdef", 5, "ab…ef"),
            ("äöüßéè", 5, "äö…éè"),
            ("abcdefg", 6, "ab…efg"),
            ("abc", 1, "…"),
        ] {
            assert_eq!(shortened(text, most), kept);
        }
        let long = "x".repeat(200_000);
        assert_eq!(shortened(&long, 100).chars().count(), 100);
    }
}
