//! Reads an amount as people write it, such as `12,400.00 EUR` or `EUR 12.400`.

use authority_decision::currency::is_code;

use crate::amount::{Amount, PLACES};

/// Characters between groups of digits, besides comma and point.
const GROUPS: [char; 6] = [' ', '\u{a0}', '\u{202f}', '\u{2009}', '\'', '\u{2019}'];
/// The number of digits in a group.
const GROUP: usize = 3;
/// The maximum number of characters that are read.
const LONGEST: usize = 60;

/// Returns the amounts that a text can mean. A comma or a point before three digits can separate
/// groups or decimal places: such a text can mean two amounts. Empty if it is not an amount.
pub(crate) fn read(text: &str) -> Vec<Amount> {
    let text = text.trim();
    if text.chars().count() > LONGEST {
        return Vec::new();
    }
    let (number, currency) = split(text);
    let (sign, digits) = match number.strip_prefix(['-', '\u{2212}']) {
        Some(digits) => (-1, digits),
        None => (1, number),
    };
    let digits: String = digits.chars().filter(|letter| !GROUPS.contains(letter)).collect();
    let mut parts = parts(&digits);
    parts.dedup();
    parts.into_iter().map(|parts| Amount::of_parts(sign * parts, &currency)).collect()
}

/// Splits a text into its number and its currency, in capital letters. The currency may come first.
fn split(text: &str) -> (&str, String) {
    let is_number = |letter: char| letter.is_ascii_digit() || matches!(letter, '-' | '\u{2212}');
    let first = text.find(is_number).unwrap_or_default();
    let last = text.rfind(|letter: char| letter.is_ascii_digit());
    let (before, rest) = text.split_at(first);
    let end = last.map_or(0, |last| (last + 1).saturating_sub(first));
    let (number, after) = rest.split_at(end.min(rest.len()));
    let code = format!("{}{}", before.trim(), after.trim()).to_ascii_uppercase();
    let is_one = before.trim().is_empty() || after.trim().is_empty();
    if code.is_empty() || is_one && is_code(&code) { (number, code) } else { ("", code) }
}

/// The ten-thousandths that digits with commas and points can mean.
fn parts(digits: &str) -> Vec<i128> {
    let separators: Vec<(usize, char)> =
        digits.char_indices().filter(|(_, letter)| matches!(letter, ',' | '.')).collect();
    let Some((last, mark)) = separators.last().copied() else {
        return exact(digits, "").into_iter().collect();
    };
    let (whole, fraction) = (&digits[..last], &digits[last + 1..]);
    let is_group = separators.iter().all(|(_, other)| *other == mark) && fraction.len() == GROUP;
    let is_decimal = separators.iter().filter(|(_, other)| *other == mark).count() == 1;
    let grouped = is_group.then(|| without(digits, mark)).flatten();
    let other = if mark == ',' { '.' } else { ',' };
    let decimal = is_decimal.then(|| without(whole, other)).flatten();
    let grouped = grouped.and_then(|whole| exact(&whole, ""));
    let decimal = decimal.and_then(|whole| exact(&whole, fraction));
    grouped.into_iter().chain(decimal).collect()
}

/// Joins groups of digits. `None` if a group after the first has not three digits.
fn without(digits: &str, mark: char) -> Option<String> {
    let mut groups = digits.split(mark);
    let first = groups.next()?;
    let are_whole = groups.all(|group| group.len() == GROUP);
    are_whole.then(|| first.to_owned() + &digits[first.len()..].replace(mark, ""))
}

fn exact(whole: &str, fraction: &str) -> Option<i128> {
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_plain(whole) || !is_plain(fraction) || fraction.len() > PLACES {
        return None;
    }
    format!("{whole}{fraction:0<PLACES$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_read_as_people_write_it() {
        let exact = |text: &str| -> Vec<String> {
            read(text).into_iter().map(|amount| amount.compared()).collect()
        };
        for text in [
            "12400 EUR",
            "12400 eur",
            "12,400.00 EUR",
            "12.400,00 EUR",
            "EUR 12 400.00",
            "12\u{202f}400.00\u{202f}EUR",
            "12'400 EUR",
            "12400.0000EUR",
        ] {
            assert_eq!(exact(text), ["124000000 EUR"], "{text}");
        }
        assert_eq!(exact("12,400 EUR"), ["124000000 EUR", "124000 EUR"]);
        assert_eq!(exact("1.5 KWD"), ["15000 KWD"]);
        assert_eq!(exact("-5 EUR"), ["-50000 EUR"]);
        assert_eq!(exact("12400"), ["124000000 "]);
        assert_eq!(exact("1,234,567 JPY"), ["12345670000 JPY"]);
        for text in [
            "",
            "EUR",
            "RE-2026-11",
            "DE89 3704",
            "1,2,3 EUR",
            "1.00001 EUR",
            "12 EUR CHF x",
            "12,40,000.00 EUR",
        ] {
            assert!(exact(text).is_empty(), "{text}");
        }
    }
}
