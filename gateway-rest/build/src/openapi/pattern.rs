//! Generates a text that matches a pattern, for the subset of regular expressions in the protos.

use std::{iter::Peekable, str::Chars};

/// Returns the shortest matching text of at least `least` characters; `None` for unsupported syntax
/// (look-around, back references, negated classes, Unicode classes).
pub(super) fn matching(pattern: &str, least: usize) -> Option<String> {
    (0..=least.max(1)).find_map(|more| {
        let mut reader = Reader { rest: pattern.chars().peekable(), more };
        let text = reader.choice()?;
        (reader.rest.next().is_none() && text.chars().count() >= least).then_some(text)
    })
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    /// How often an open-ended repeat exceeds its minimum.
    more: usize,
}

impl Reader<'_> {
    /// Reads the first alternative. The others are parsed and dropped.
    fn choice(&mut self) -> Option<String> {
        let first = self.sequence()?;
        while self.rest.next_if_eq(&'|').is_some() {
            self.sequence()?;
        }
        Some(first)
    }

    fn sequence(&mut self) -> Option<String> {
        let mut text = String::new();
        while self.rest.peek().is_some_and(|next| !matches!(next, '|' | ')')) {
            let atom = self.atom()?;
            let times = self.repeat()?;
            text.push_str(&atom.repeat(times));
        }
        Some(text)
    }

    fn atom(&mut self) -> Option<String> {
        Some(match self.rest.next()? {
            '^' | '$' => String::new(),
            '(' => {
                if self.rest.next_if_eq(&'?').is_some() {
                    self.rest.next_if_eq(&':')?;
                }
                let inner = self.choice()?;
                self.rest.next_if_eq(&')')?;
                inner
            }
            '[' => self.class()?.to_string(),
            '\\' => self.escape()?.to_string(),
            '.' => "x".to_owned(),
            '*' | '+' | '?' | '{' => return None,
            letter => letter.to_string(),
        })
    }

    /// Reads a class and returns its first member.
    fn class(&mut self) -> Option<char> {
        let first = match self.rest.next()? {
            '^' | '[' => return None,
            '\\' => self.escape()?,
            letter => letter,
        };
        loop {
            match self.rest.next()? {
                ']' => return Some(first),
                '\\' => {
                    self.rest.next()?;
                }
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        Some(match self.rest.next()? {
            'd' => '0',
            'w' => 'a',
            's' => ' ',
            letter if letter.is_alphanumeric() => return None,
            letter => letter,
        })
    }

    fn repeat(&mut self) -> Option<usize> {
        let times = match self.rest.peek() {
            Some('*') => self.more,
            Some('+') => self.more.max(1),
            Some('?') => self.more.min(1),
            Some('{') => return self.count(),
            _ => return Some(1),
        };
        self.rest.next();
        // Greediness does not matter for the shortest text.
        self.rest.next_if_eq(&'?');
        Some(times)
    }

    /// Reads `{n}`, `{n,}`, `{n,m}`.
    fn count(&mut self) -> Option<usize> {
        self.rest.next();
        let mut inner = String::new();
        loop {
            match self.rest.next()? {
                '}' => break,
                letter => inner.push(letter),
            }
        }
        let (least, most) = match inner.split_once(',') {
            None => (inner.parse().ok()?, inner.parse().ok()?),
            Some((least, "")) => (least.parse().ok()?, usize::MAX),
            Some((least, most)) => (least.parse().ok()?, most.parse().ok()?),
        };
        Some(self.more.clamp(least, most.max(least)))
    }
}

#[cfg(test)]
mod tests {
    use super::matching;

    #[test]
    fn finds_the_shortest_text() {
        for (pattern, least, text) in [
            ("^[A-Z]{3}$", 0, "AAA"),
            ("^[a-z][a-z0-9-]{1,62}$", 0, "aa"),
            (r"^-?[0-9]+(\.[0-9]{1,2})?$", 0, "0"),
            ("^(?:low|high)$", 0, "low"),
            ("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", 3, "aaa"),
            (r"^svc:\w+:[^x]?$", 0, ""),
            ("(?=x)", 0, ""),
        ] {
            assert_eq!(matching(pattern, least).unwrap_or_default(), text, "{pattern}");
        }
    }
}
