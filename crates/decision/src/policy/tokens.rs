//! The tokens of a Cedar text, exactly as read by Cedar's own lexer.
//!
//! The depth measure must see the same tokens as Cedar's parser. This lexer accepts exactly the
//! tokens of Cedar's grammar (cedar-policy-core, `parser/grammar.lalrpop`): a comment ends at a
//! line feed or at a carriage return, words are ASCII, and all other characters are refused.

/// The kind of a token, as far as depth and statements depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// White space or a comment, which the parser does not see.
    Skipped,
    /// An identifier, a keyword, a slot, a number or a quoted text.
    Word,
    /// A bracket, an operator or a separator.
    Symbol,
}

const PAIRS: [&str; 7] = ["==", "!=", "<=", ">=", "||", "&&", "::"];
const SINGLES: &[u8] = b"@.,;:(){}[]<>+-*/%!=";

/// Returns the token at the start of `rest` and its length in bytes; `None` if Cedar has no such
/// token.
pub(crate) fn token(rest: &str) -> Option<(Kind, usize)> {
    if rest.starts_with("//") {
        let line = rest.find(['\n', '\r']).unwrap_or(rest.len());
        return Some((Kind::Skipped, line));
    }
    let space = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
    if space > 0 {
        return Some((Kind::Skipped, space));
    }
    let first = *rest.as_bytes().first()?;
    match first {
        b'"' => quoted(rest).map(|length| (Kind::Word, length)),
        b'0'..=b'9' => Some((Kind::Word, run(rest, |c| c.is_ascii_digit()))),
        b'_' | b'a'..=b'z' | b'A'..=b'Z' => Some((Kind::Word, word(rest))),
        b'?' => {
            let name = rest.get(1..).map_or(0, word);
            let begins = !rest.as_bytes().get(1)?.is_ascii_digit();
            (name > 0 && begins).then_some((Kind::Word, 1 + name))
        }
        _ if PAIRS.iter().any(|pair| rest.starts_with(pair)) => Some((Kind::Symbol, 2)),
        _ => SINGLES.contains(&first).then_some((Kind::Symbol, 1)),
    }
}

fn word(rest: &str) -> usize {
    run(rest, |c| c.is_ascii_alphanumeric() || c == b'_')
}

fn run(rest: &str, belongs: impl Fn(u8) -> bool) -> usize {
    rest.bytes().take_while(|c| belongs(*c)).count()
}

/// Returns the length of the quoted text.
///
/// Returns `None` if it is unterminated or has an escaped line feed, which Cedar's lexer refuses.
fn quoted(rest: &str) -> Option<usize> {
    let mut escaped = false;
    for (place, c) in rest.char_indices().skip(1) {
        match c {
            '\n' if escaped => return None,
            '"' if !escaped => return Some(place + 1),
            _ => escaped = c == '\\' && !escaped,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    /// The patterns of Cedar's grammar. Its lexer takes the longest match.
    fn grammar() -> Vec<(Kind, Regex)> {
        let symbols = r"==|!=|<=|>=|\|\||&&|::|[@.,;:(){}\[\]<>+\-*/%!=]";
        [
            (Kind::Skipped, r"\s*"),
            (Kind::Skipped, r"//[^\n\r]*[\n\r]*"),
            (Kind::Word, r"\?[_a-zA-Z][_a-zA-Z0-9]*"),
            (Kind::Word, r"[_a-zA-Z][_a-zA-Z0-9]*"),
            (Kind::Word, r"[0-9]+"),
            (Kind::Word, r#""(\\.|[^"\\])*""#),
            (Kind::Symbol, symbols),
        ]
        .map(|(kind, pattern)| (kind, Regex::new(&format!("^(?:{pattern})")).unwrap()))
        .into()
    }

    /// Returns the tokens that the parser sees, and whether the whole text consists of tokens.
    fn by_grammar<'t>(grammar: &[(Kind, Regex)], text: &'t str) -> (Vec<&'t str>, bool) {
        let (mut seen, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let ends = grammar.iter().filter_map(|(kind, one)| Some((one.find(rest)?.end(), kind)));
            match ends.max_by_key(|(end, _)| *end) {
                Some((end, kind)) if end > 0 => {
                    seen.extend((*kind != Kind::Skipped).then_some(&rest[..end]));
                    rest = &rest[end..];
                }
                _ => return (seen, false),
            }
        }
        (seen, true)
    }

    fn by_us(text: &str) -> (Vec<&str>, bool) {
        let (mut seen, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let Some((kind, length)) = token(rest) else { return (seen, false) };
            seen.extend((kind != Kind::Skipped).then_some(&rest[..length]));
            rest = &rest[length..];
        }
        (seen, true)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn reads_the_tokens_that_cedar_reads(
            parts in prop::collection::vec(prop_oneof![
                Just("//"), Just("/"), Just("\r"), Just("\n"), Just("\r\n"), Just("\""), Just("\\"),
                Just("("), Just(")"), Just("["), Just("]"), Just("{"), Just("}"), Just(";"),
                Just("|"), Just("||"), Just("&"), Just("="), Just("!"), Just("<"), Just(":"),
                Just("a"), Just("_b1"), Just("7"), Just("?"), Just("é"), Just("\u{2028}"),
                Just("\u{85}"), Just("\u{b}"), Just(" "), Just("if"), Just("'"), Just("#"),
            ], 0..40),
        ) {
            let (text, grammar) = (parts.concat(), grammar());
            prop_assert_eq!(by_us(&text), by_grammar(&grammar, &text));
        }
    }

    #[test]
    fn a_comment_ends_at_a_carriage_return() {
        assert_eq!(by_us("// one\rtwo// three\n four"), (vec!["two", "four"], true));
    }
}
