//! `pattern`: JSON Schema's regular expressions, matched in linear time.
//!
//! They follow ECMA 262: `\d`, `\w` and `\b` are ASCII, `.` excludes line ends, and classes do not
//! have operators. The engine differs on some of these points, and patterns are therefore
//! translated for it. Patterns that can't run in linear time (look-around, back references) or that
//! depend on a version of Unicode (`\p`) are refused: a decision must have the same result forever.

use std::{iter::Peekable, str::Chars};

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// The maximum size of the engine's program, in bytes.
const LARGEST: usize = 1 << 20;
/// The factor by which an anchored pattern of bounded length is cheaper. Few of its states are
/// active at a time.
const ANCHORED: u64 = 16;

const SPACES: &str = r"\t\n\x0b\x0c\r\x20\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";
const WORD: &str = "0-9A-Za-z_";

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    /// The number of states of its automaton.
    pub(super) size: u64,
    /// The number of steps per byte of a text.
    pub(super) cost: u64,
}

impl Pattern {
    pub(super) fn of(text: &str) -> Result<Self, String> {
        let own = translated(text)?;
        let hir = regex_syntax::parse(&own).map_err(|_| unreadable())?;
        let regex =
            RegexBuilder::new(&own).size_limit(LARGEST).build().map_err(|_| unreadable())?;
        let size = size(&hir);
        let properties = hir.properties();
        let anchored = properties.look_set_prefix().contains(Look::Start);
        let chain = anchored && properties.maximum_len().is_some();
        let cost = if chain { size.div_ceil(ANCHORED) } else { size };
        Ok(Self { regex, size, cost })
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

fn unreadable() -> String {
    "cannot be matched: it is not a regular expression, is too large, or needs look-around or back references"
        .to_owned()
}

/// Estimates the number of states of the engine's automaton.
fn size(hir: &Hir) -> u64 {
    let sum = |parts: &[Hir]| parts.iter().map(size).fold(0, u64::saturating_add);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => 1 + u64::from(!class.is_ascii()),
        HirKind::Repetition(repeated) => {
            let times = repeated.max.unwrap_or(repeated.min.saturating_add(1)).max(1);
            size(&repeated.sub).saturating_mul(times.into())
        }
        HirKind::Capture(group) => size(&group.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

type Rest<'t> = Peekable<Chars<'t>>;

/// Translates the pattern into the engine's syntax.
fn translated(text: &str) -> Result<String, String> {
    let mut own = String::with_capacity(text.len() + 8);
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '\\' => own += &escape(&mut rest, false)?,
            '[' => class(&mut rest, &mut own)?,
            '.' => own += r"[^\n\r\x{2028}\x{2029}]",
            '(' if rest.peek() == Some(&'?') => group(&mut rest, &mut own)?,
            '{' if rest.peek() == Some(&',') => return Err("must write `{0,…}` for `{,…}`".into()),
            other => own.push(other),
        }
    }
    Ok(own)
}

/// Parses the part after `(?`. Only named and unnamed groups are allowed.
fn group(rest: &mut Rest<'_>, own: &mut String) -> Result<(), String> {
    rest.next();
    match (rest.next(), rest.peek()) {
        (Some(':'), _) => own.push_str("(?:"),
        (Some('<'), Some(next)) if !matches!(next, '=' | '!') => own.push_str("(?<"),
        _ => return Err("must not have look-around or flags".to_owned()),
    }
    Ok(())
}

/// Parses a class after its `[`.
fn class(rest: &mut Rest<'_>, own: &mut String) -> Result<(), String> {
    own.push('[');
    if rest.peek() == Some(&'^') {
        rest.next();
        own.push('^');
    }
    if rest.peek() == Some(&']') {
        return Err("must not have an empty class".to_owned());
    }
    while let Some(next) = rest.next() {
        match next {
            ']' => {
                own.push(']');
                return Ok(());
            }
            '\\' => own.push_str(&escape(rest, true)?),
            '-' if rest.peek() == Some(&'-') => return Err(r"must write `\-` for `-` here".into()),
            // These characters are operators in the engine's classes.
            '[' | '&' | '~' => own.extend(['\\', next]),
            other => own.push(other),
        }
    }
    Err("must close its class".to_owned())
}

/// Parses an escape after its backslash.
fn escape(rest: &mut Rest<'_>, in_class: bool) -> Result<String, String> {
    let next = rest.next().ok_or("must not end in a backslash")?;
    Ok(match next {
        'd' => "[0-9]".to_owned(),
        'D' => "[^0-9]".to_owned(),
        'w' => format!("[{WORD}]"),
        'W' => format!("[^{WORD}]"),
        's' => format!("[{SPACES}]"),
        'S' => format!("[^{SPACES}]"),
        'b' if in_class => r"\x08".to_owned(),
        'b' => r"(?-u:\b)".to_owned(),
        't' | 'n' | 'r' | 'f' | 'v' => format!("\\{next}"),
        'x' => format!(r"\x{{{}}}", digits(rest, 2)?),
        'u' if rest.peek() == Some(&'{') => {
            rest.next();
            let code: String = rest.by_ref().take_while(|one| *one != '}').collect();
            format!(r"\x{{{code}}}")
        }
        'u' => format!(r"\x{{{}}}", digits(rest, 4)?),
        'p' | 'P' => return Err(r"must list ranges of characters, and not `\p`".to_owned()),
        other if other.is_ascii_alphanumeric() => {
            return Err(format!(r"must not have `\{other}`"));
        }
        // The character itself. The engine gives `\<` a meaning of its own.
        other => regex_syntax::escape(other.encode_utf8(&mut [0; 4])),
    })
}

fn digits(rest: &mut Rest<'_>, count: usize) -> Result<String, String> {
    let found: String = rest.by_ref().take(count).collect();
    let whole = found.chars().count() == count && found.chars().all(|one| one.is_ascii_hexdigit());
    whole.then_some(found).ok_or_else(|| format!("must have {count} hexadecimal digits there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::of(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}")).matches(text)
    }

    #[test]
    fn they_mean_what_ecma_262_says() {
        for (pattern, yes, no) in [
            ("b", "abc", "ac"),
            (r"^\d{2}$", "12", "١٢"),
            (r"^\w+$", "a_1", "é"),
            (r"^\W$", "é", "e"),
            (r"^\S+$", "é", "\u{feff}"),
            (r"^[\s]$", "\u{2003}", "\u{85}"),
            ("^.$", "é", "\r"),
            ("^a$", "a", "a\n"),
            (r"^[a[b]$", "[", "]"),
            ("^[a&&b]$", "&", "c"),
            (r"^[\w-]+$", "a-b", "a b"),
            (r"\bé", "aé", "é"),
            (r"^[^\d]$", "١", "1"),
            (r"^\u00e9\x41$", "éA", "eA"),
            (r"^\<\-\_$", "<-_", "x-_"),
            (r"^(?:a|(?<n>b))\/\.$", "b/.", "b/x"),
            (
                "^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$",
                "DE44500105175407324931",
                "de44500105175407324931",
            ),
        ] {
            assert!(matches(pattern, yes), "{pattern} {yes:?}");
            assert!(!matches(pattern, no), "{pattern} {no:?}");
        }
    }

    #[test]
    fn what_is_not_linear_or_not_for_ever_is_refused() {
        for pattern in [
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "(?<!a)",
            r"(a)\1",
            "(?i)a",
            r"\p{L}",
            r"\B",
            "[]",
            "[^]",
            "(",
            "[a",
            "a{2000}{2000}",
            r"\",
            r"\cA",
            "x{,5}",
            r"\ud83d",
            "[+--]",
            r"\x1",
        ] {
            assert!(Pattern::of(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_costs_by_what_it_may_have_to_try() {
        let cost = |pattern: &str| Pattern::of(pattern).unwrap().cost;
        assert!(cost(r"^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$") <= 3);
        assert!(cost("^.{1,200}$") <= 32);
        assert!(cost("a[ab]{200}c") >= 200);
        assert!(cost(r"^[^@\s]+@[^@\s]+\.[^@\s]+$") <= 16);
    }
}
