//! A policy's text, before Cedar's parser sees it: its statements' places, and how deep it nests.
//!
//! Cedar's parser tells no places of statements, and recurses: some forty brackets or a hundred
//! and fifty `||` exhaust the stack of a worker thread and abort the process. So what is nested
//! deeper than any sensible policy is refused here, by a measure that looks at tokens only.

use std::ops::Range;

use super::policy::PolicyError;

/// The longest text of one record, in bytes.
pub const LONGEST_TEXT: usize = 64 * 1024;
/// How deep a statement may nest: each open bracket counts four, each operator in a chain one.
/// Two MiB of stack, without optimisation, bear more than twice as much.
pub const DEEPEST: usize = 64;
const BRACKET: usize = 4;

/// What nests at one level of brackets.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Operators that chain: `||`, `&&`, `+`, `-`, `*`, `if`.
    chain: usize,
    /// Member accesses, calls and negations of the present term.
    term: usize,
}

/// Reads tokens and measures.
struct Reader {
    place: usize,
    levels: Vec<Level>,
    /// Where the present statement began.
    start: Option<usize>,
    spans: Vec<Range<usize>>,
}

/// Each statement's bytes, from its first token to its semicolon. The text may be no Cedar at all;
/// the caller has Cedar parse it and checks that both count as many statements.
pub(super) fn split(text: &str) -> Result<Vec<Range<usize>>, PolicyError> {
    if text.len() > LONGEST_TEXT {
        return Err(PolicyError::at(text, 0, "the policy is longer than 64 KiB"));
    }
    let levels = vec![Level::default()];
    let mut reader = Reader { place: 0, levels, start: None, spans: Vec::new() };
    while let Some(rest) = text.get(reader.place..).filter(|rest| !rest.is_empty()) {
        let place = reader.place;
        reader.place += reader.token(rest);
        let own: usize = reader.levels.iter().map(|level| level.chain + level.term).sum();
        if own + BRACKET * (reader.levels.len() - 1) > DEEPEST {
            let problem = "the statement nests too deep here; split it, or use a set";
            return Err(PolicyError::at(text, place, problem));
        }
    }
    Ok(reader.spans)
}

impl Reader {
    /// Takes in the token that `rest` begins with; gives its length.
    fn token(&mut self, rest: &str) -> usize {
        let first = rest.chars().next().map_or(1, char::len_utf8);
        if rest.starts_with("//") {
            return rest.find('\n').unwrap_or(rest.len());
        }
        if rest.starts_with(char::is_whitespace) {
            return first;
        }
        self.start.get_or_insert(self.place);
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if word > 0 {
            self.level().chain += usize::from(rest.get(..word) == Some("if"));
            return word;
        }
        if rest.starts_with("||") || rest.starts_with("&&") {
            self.level().chain += 1;
            self.level().term = 0;
            return 2;
        }
        match rest.as_bytes().first() {
            Some(b'"') => return quoted(rest),
            Some(b'(' | b'[' | b'{') => self.levels.push(Level::default()),
            Some(b')' | b']' | b'}') => {
                if self.levels.len() > 1 {
                    self.levels.pop();
                }
                self.level().term += 1;
            }
            Some(b'+' | b'-' | b'*') => self.level().chain += 1,
            Some(b'.' | b'!') => self.level().term += 1,
            Some(b',') => *self.level() = Level::default(),
            Some(b';') => {
                let start = self.start.take().unwrap_or(self.place);
                self.spans.push(start..self.place + 1);
                self.levels = vec![Level::default()];
            }
            _ => {}
        }
        first
    }

    fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }
}

/// The length of the quoted text that `rest` begins with.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (place, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return place + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(text: &str) -> Vec<&str> {
        split(text).unwrap().into_iter().map(|span| &text[span]).collect()
    }

    #[test]
    fn finds_statements_past_comments_and_quotes() {
        let text = "// one; two\n permit(a, \";\\\"(\") ; /*x*/ b;\n// end";
        assert_eq!(statements(text), ["permit(a, \";\\\"(\") ;", "/*x*/ b;"]);
        assert!(statements("  \n").is_empty());
    }

    #[test]
    fn measures_depth_and_not_length() {
        assert!(split(&"a == 1 && context.input.b.c > 2 && ".repeat(30)).is_ok());
        assert!(split(&format!("[{}]", "1, ".repeat(5_000))).is_ok());
        assert!(split(&"forbid(principal, action, resource);".repeat(1_000)).is_ok());
        for deep in ["(", "[", "{a:", "true || ", "1 + ", "if x then y else ", ".a", "[\"a\"]", "!"]
        {
            assert!(split(&deep.repeat(65)).is_err(), "{deep}");
        }
    }
}
