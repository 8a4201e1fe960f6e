//! Action patterns in three forms: `payment.execute` exact, `payment.*` below, `*` all.

use std::{cmp::Reverse, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The maximum length of an action or pattern, in characters.
pub const LONGEST: usize = 128;

/// The reason why a text is not an action or pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("is empty")]
    Empty,
    #[error("is longer than 128 characters")]
    Long,
    #[error("must be dotted segments of a-z, 0-9, `_` and `-`, such as `payment.execute`")]
    Segment,
    #[error("may hold `*` only alone or as its last segment, such as `payment.*`")]
    Star,
}

/// Checks a dotted action name: segments of `[a-z0-9_-]+`, at most 128 characters.
pub fn check_action(name: &str) -> Result<(), PatternError> {
    if name.is_empty() {
        return Err(PatternError::Empty);
    }
    if name.len() > LONGEST {
        return Err(PatternError::Long);
    }
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_' || c == b'-';
    let sound = |segment: &str| !segment.is_empty() && segment.bytes().all(plain);
    if name.split('.').all(sound) { Ok(()) } else { Err(PatternError::Segment) }
}

/// Returns the proper dotted prefixes of an action, longest first: `a.b`, `a` for `a.b.c`.
pub fn prefixes(action: &str) -> impl Iterator<Item = &str> {
    action.rmatch_indices('.').filter_map(|(dot, _)| action.get(..dot))
}

/// Whether `action` is one or more segments below `prefix`.
pub fn is_below(action: &str, prefix: &str) -> bool {
    action.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.') && rest.len() > 1)
}

/// One action pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Pattern {
    /// Exactly this action.
    Exact(String),
    /// Every action one or more segments below this prefix.
    Below(String),
    /// Every action.
    All,
}

impl Pattern {
    pub fn covers(&self, action: &str) -> bool {
        match self {
            Self::Exact(name) => name == action,
            Self::Below(prefix) => is_below(action, prefix),
            Self::All => true,
        }
    }

    /// Whether `outer` covers every action that this pattern covers (attenuation).
    pub fn is_within(&self, outer: &Self) -> bool {
        match (self, outer) {
            (_, Self::All) => true,
            (Self::All, _) | (Self::Below(_), Self::Exact(_)) => false,
            (Self::Exact(name), _) => outer.covers(name),
            (Self::Below(own), Self::Below(prefix)) => own == prefix || is_below(own, prefix),
        }
    }

    /// Returns the sort key, most specific first: exact, then the longer prefix, then all.
    pub fn specificity(&self) -> Specificity {
        match self {
            Self::Exact(_) => Specificity(Reverse(usize::MAX)),
            Self::Below(prefix) => Specificity(Reverse(prefix.split('.').count())),
            Self::All => Specificity(Reverse(0)),
        }
    }
}

/// The order in which candidates are tried; see [`Pattern::specificity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity(Reverse<usize>);

/// Returns the specificity of the most specific pattern that covers the action; `None` if none
/// does.
pub fn best_cover(patterns: &[Pattern], action: &str) -> Option<Specificity> {
    patterns.iter().filter(|pattern| pattern.covers(action)).map(Pattern::specificity).min()
}

/// Whether any of the patterns covers the action.
pub fn covered(patterns: &[Pattern], action: &str) -> bool {
    patterns.iter().any(|pattern| pattern.covers(action))
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text == "*" {
            return Ok(Self::All);
        }
        if text.len() > LONGEST {
            return Err(PatternError::Long);
        }
        let (stem, below) = match text.strip_suffix(".*") {
            Some(stem) => (stem, true),
            None => (text, false),
        };
        if stem.contains('*') {
            return Err(PatternError::Star);
        }
        check_action(stem)?;
        Ok(if below { Self::Below(stem.to_owned()) } else { Self::Exact(stem.to_owned()) })
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => to.write_str(name),
            Self::Below(prefix) => write!(to, "{prefix}.*"),
            Self::All => to.write_str("*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn covers_one_segment_or_more_below() {
        let payment = pattern("payment.*");
        assert!(payment.covers("payment.execute") && payment.covers("payment.sepa.instant"));
        assert!(!payment.covers("payment") && !payment.covers("payments.execute"));
        assert!(pattern("*").covers("anything") && pattern("a.b").covers("a.b"));
        assert!(!pattern("a.b").covers("a.b.c"));
    }

    #[test]
    fn refuses_every_other_form() {
        for text in ["", "a.", ".a", "a..b", "a*", "*.a", "a.*.b", "**", "a.**", ".*", "A.b", "a b"]
        {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
        assert!("a".repeat(129).parse::<Pattern>().is_err());
        assert!("a".repeat(128).parse::<Pattern>().is_ok());
    }

    #[test]
    fn is_within_is_the_subset() {
        let texts = ["*", "a.*", "a.b.*", "a.b", "a.b.c", "b", "a", "ab.*"];
        let actions = ["a", "a.b", "a.b.c", "a.b.c.d", "b", "b.c", "ab.c", "a.x"];
        for (inner, outer) in texts.iter().flat_map(|i| texts.iter().map(move |o| (i, o))) {
            let (inner, outer) = (pattern(inner), pattern(outer));
            let subset = actions.iter().all(|a| !inner.covers(a) || outer.covers(a));
            assert_eq!(inner.is_within(&outer), subset, "{inner} in {outer}");
        }
    }

    #[test]
    fn most_specific_first() {
        let mut patterns = ["*", "a.*", "a.b.*", "a.b"].map(pattern);
        patterns.sort_by_key(Pattern::specificity);
        assert_eq!(patterns.map(|p| p.to_string()), ["a.b", "a.b.*", "a.*", "*"]);
    }

    #[test]
    fn prefixes_are_proper() {
        assert_eq!(prefixes("a.b.c").collect::<Vec<_>>(), ["a.b", "a"]);
        assert_eq!(prefixes("a").count(), 0);
    }
}
