//! The tokens of a filter.

use super::error::FilterError;

/// The greatest integer that every JSON reader represents exactly.
const GREATEST_INTEGER: i64 = (1 << 53) - 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A name, including `in`, `has`, `true` and `false`.
    Name(String),
    Text(String),
    Integer(i64),
    /// Operators and brackets.
    Sign(&'static str),
    End,
}

/// All signs. A sign comes before the signs that are its prefixes.
const SIGNS: [&str; 15] =
    ["&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "(", ")", "[", "]", ",", "."];

/// Returns all tokens with their offsets, [`Token::End`] last.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, FilterError> {
    let mut found = Vec::new();
    let mut offset = 0;
    while let Some(rest) = text.get(offset..).filter(|rest| !rest.is_empty()) {
        let first = rest.as_bytes().first().copied().unwrap_or_default();
        let length = match first {
            b' ' | b'\t' | b'\n' | b'\r' => {
                offset += 1;
                continue;
            }
            b'"' | b'\'' => {
                let (value, length) = quoted(rest, offset)?;
                found.push((offset, Token::Text(value)));
                length
            }
            b'-' | b'0'..=b'9' => {
                let (value, length) = integer(rest, offset)?;
                found.push((offset, Token::Integer(value)));
                length
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                let length = leading(rest, is_name);
                found.push((offset, Token::Name(rest.chars().take(length).collect())));
                length
            }
            _ => {
                let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
                let sign = sign.ok_or_else(|| unexpected(rest, offset))?;
                found.push((offset, Token::Sign(sign)));
                sign.len()
            }
        };
        offset += length;
    }
    found.push((text.len(), Token::End));
    Ok(found)
}

fn is_name(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

fn leading(text: &str, belongs: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| belongs(*byte)).count()
}

fn unexpected(rest: &str, offset: usize) -> FilterError {
    let problem = match rest.chars().next() {
        Some('=') => "write `==` to compare".to_owned(),
        Some('&') => "write `&&` for and".to_owned(),
        Some('|') => "write `||` for or".to_owned(),
        Some(letter) => format!("unexpected character `{}`", letter.escape_default()),
        None => "unexpected end".to_owned(),
    };
    FilterError::new(offset, problem)
}

fn integer(rest: &str, offset: usize) -> Result<(i64, usize), FilterError> {
    let sign = usize::from(rest.starts_with('-'));
    let digits = leading(rest.get(sign..).unwrap_or_default(), |byte| byte.is_ascii_digit());
    let (number, after) = rest.split_at(sign + digits);
    if digits == 0 || after.starts_with(|c: char| c == '.' || c == '_' || c.is_alphanumeric()) {
        return Err(FilterError::new(offset, "numbers are whole and decimal, such as 3 or -3"));
    }
    let value = number
        .parse()
        .ok()
        .filter(|value: &i64| (-GREATEST_INTEGER..=GREATEST_INTEGER).contains(value));
    let value = value.ok_or_else(|| {
        FilterError::new(offset, "numbers are from -9007199254740991 to 9007199254740991")
    })?;
    Ok((value, number.len()))
}

/// The value of a quoted literal, and its length with the quotes.
fn quoted(rest: &str, offset: usize) -> Result<(String, usize), FilterError> {
    let mut letters = rest.char_indices();
    let quote = letters.next().map(|(_, quote)| quote);
    let mut value = String::new();
    while let Some((at, letter)) = letters.next() {
        match letter {
            _ if Some(letter) == quote => return Ok((value, at + 1)),
            '\n' | '\r' => {
                return Err(FilterError::new(offset + at, "write a line break as `\\n` in text"));
            }
            '\\' => {
                let escape = letters.next().map(|(_, escape)| escape);
                let hex: String = match escape {
                    Some('u') => letters.by_ref().take(4).map(|(_, digit)| digit).collect(),
                    _ => String::new(),
                };
                let problem =
                    "the escapes are \\\\, \\\", \\', \\n, \\r, \\t and \\u with four digits";
                let letter = unescaped(escape, &hex);
                value.push(letter.ok_or_else(|| FilterError::new(offset + at, problem))?);
            }
            _ => value.push(letter),
        }
    }
    Err(FilterError::new(offset, "the text does not end: its closing quote is missing"))
}

fn unescaped(escape: Option<char>, hex: &str) -> Option<char> {
    match escape? {
        letter @ ('\\' | '"' | '\'') => Some(letter),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'u' if hex.len() == 4 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            char::from_u32(u32::from_str_radix(hex, 16).ok()?)
        }
        _ => None,
    }
}
