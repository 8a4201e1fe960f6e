//! Scans a policy's text before Cedar parses it, for the positions of its statements and its
//! nesting depth.
//!
//! Cedar's parser does not report the positions of statements, and its syntax tree is walked
//! recursively: about a hundred brackets or a few hundred `||` exhaust a thread's stack and abort
//! the process. The depth of Cedar's tree is therefore bounded here, from the tokens.

use std::ops::Range;

use super::{
    error::PolicyError,
    tokens::{Kind, token},
};

/// The maximum length of the text of one record, in bytes.
pub(crate) const LONGEST_TEXT: usize = 64 * 1024;
/// The maximum depth of a statement's tree.
///
/// Each open bracket counts four, for Cedar's layers between one bracket and the next. Each
/// operator, field access and call counts one.
pub(crate) const DEEPEST: usize = 96;
const BRACKET: usize = 4;

/// The nesting at one level of brackets.
///
/// The tree of a level is at most as deep as the number of its operators plus the depth of its
/// deepest operand.
#[derive(Default)]
struct Level {
    /// The bracket that opened the level; `None` for the statement itself.
    open: Option<char>,
    /// The number of operators since the last comma.
    operators: usize,
    /// The depth of the deepest operand since the last comma.
    operand: usize,
    /// The number of negations before the current operand.
    prefix: usize,
    /// The depth of the current operand: field accesses, calls, brackets.
    term: usize,
    /// The depth of the deepest part between commas.
    part: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.part.max(self.operators + self.operand.max(self.prefix + self.term))
    }

    fn end_operand(&mut self) {
        self.operand = self.operand.max(self.prefix + self.term);
        (self.prefix, self.term) = (0, 0);
    }

    fn operator(&mut self) {
        self.operators += 1;
        self.end_operand();
    }

    fn end_part(&mut self) {
        *self = Self { open: self.open, part: self.depth(), ..Self::default() };
    }
}

/// Reads tokens and measures the depth.
struct Reader {
    place: usize,
    /// The level of the statement itself. The open brackets are in `inner`.
    outer: Level,
    inner: Vec<Level>,
    /// The start of the current statement.
    start: Option<usize>,
    spans: Vec<Range<usize>>,
}

/// Returns the byte range of each statement, from its first token to its semicolon.
///
/// The text need not be valid Cedar. The caller parses it with Cedar and checks that both find the
/// same number of statements.
pub(crate) fn split(text: &str) -> Result<Vec<Range<usize>>, PolicyError> {
    if text.len() > LONGEST_TEXT {
        return Err(PolicyError::at(text, 0, "the policy is longer than 64 KiB"));
    }
    let (outer, inner) = (Level::default(), Vec::new());
    let mut reader = Reader { place: 0, outer, inner, start: None, spans: Vec::new() };
    while let Some(rest) = text.get(reader.place..).filter(|rest| !rest.is_empty()) {
        let place = reader.place;
        let fault = |problem: String| PolicyError::at(text, place, problem);
        let (kind, length) = token(rest).ok_or_else(|| fault(no_token(rest)))?;
        if kind != Kind::Skipped {
            reader.start.get_or_insert(place);
            reader.take(kind, rest.get(..length).unwrap_or_default()).map_err(fault)?;
        }
        if BRACKET * reader.inner.len() + reader.level().depth() > DEEPEST {
            let problem = "the statement nests too deep here; split it, or use a set";
            return Err(fault(problem.to_owned()));
        }
        reader.place += length;
    }
    if let Some(open) = reader.inner.last().and_then(|level| level.open) {
        let problem = format!("the text ends before `{open}` is closed");
        return Err(PolicyError::at(text, text.len(), problem));
    }
    Ok(reader.spans)
}

fn no_token(rest: &str) -> String {
    if rest.starts_with('"') {
        return "unterminated quoted text".to_owned();
    }
    let first = rest.chars().next().unwrap_or_default();
    format!("unexpected `{}`", first.escape_debug())
}

impl Reader {
    fn take(&mut self, kind: Kind, token: &str) -> Result<(), String> {
        if kind == Kind::Word {
            match token {
                "if" => self.level().operators += 1,
                "then" | "else" | "in" | "has" | "like" | "is" => self.level().end_operand(),
                _ => {}
            }
            return Ok(());
        }
        match token {
            "||" | "&&" | "+" | "-" | "*" | "/" | "%" => self.level().operator(),
            "==" | "!=" | "<" | "<=" | ">" | ">=" | "=" => self.level().end_operand(),
            "!" => self.level().prefix += 1,
            "." => self.level().term += 1,
            "," => self.level().end_part(),
            "(" | "[" | "{" => {
                let open = token.chars().next();
                self.inner.push(Level { open, ..Level::default() });
            }
            ")" | "]" | "}" => self.close(token)?,
            ";" => self.end_statement()?,
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, token: &str) -> Result<(), String> {
        let closed = self.inner.pop().ok_or_else(|| format!("unmatched `{token}`"))?;
        if !matches!((closed.open, token), (Some('('), ")") | (Some('['), "]") | (Some('{'), "}")) {
            let open = closed.open.unwrap_or_default();
            return Err(format!("unexpected `{token}`: `{open}` is not closed"));
        }
        let whole = self.inner.is_empty();
        let level = self.level();
        level.term = level.term.max(closed.depth() + BRACKET) + 1;
        if whole && token == "}" {
            // Cedar joins the conditions of a statement with `&&`.
            level.operator();
        }
        Ok(())
    }

    fn end_statement(&mut self) -> Result<(), String> {
        if let Some(open) = self.inner.last().and_then(|level| level.open) {
            return Err(format!("the statement ends before `{open}` is closed"));
        }
        let start = self.start.take().unwrap_or(self.place);
        self.spans.push(start..self.place + 1);
        self.outer = Level::default();
        Ok(())
    }

    fn level(&mut self) -> &mut Level {
        self.inner.last_mut().unwrap_or(&mut self.outer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(text: &str) -> Vec<&str> {
        split(text).unwrap().into_iter().map(|span| &text[span]).collect()
    }

    #[test]
    fn finds_statements_past_comments_and_quotes() {
        let text = "// one; two\n permit(a, \";\\\"(\") ;// x\r b;\n// end";
        assert_eq!(statements(text), ["permit(a, \";\\\"(\") ;", "b;"]);
        assert!(statements("  \n").is_empty());
    }

    #[test]
    fn measures_depth_and_not_length() {
        assert!(split(&"a == 1 && context.input.b.c > 2 && ".repeat(45)).is_ok());
        assert!(split(&format!("[{}]", "1, ".repeat(5_000))).is_ok());
        assert!(split(&"forbid(principal, action, resource);".repeat(1_000)).is_ok());
        for deep in ["(", "[", "{a:", "true || ", "1 + ", "if x then y else ", ".a", "[\"a\"]", "!"]
        {
            assert!(split(&deep.repeat(DEEPEST + 1)).is_err(), "{deep}");
        }
    }

    #[test]
    fn the_page_has_these_bounds() {
        let page = include_str!("../../../../docs/reference/policies.md");
        let kib = LONGEST_TEXT / 1024;
        let pair = BRACKET + 1;
        assert_eq!(pair, 5);
        let bounds = format!(
            "has at most {kib} KiB. A statement nests at most {DEEPEST} deep: each pair of brackets counts five"
        );
        assert!(page.contains(&bounds), "docs/reference/policies.md lacks `{bounds}`");
        let nested = |brackets: usize| "(".repeat(brackets) + &")".repeat(brackets);
        assert!(split(&nested(DEEPEST / pair)).is_ok());
        assert!(split(&nested(DEEPEST / pair + 1)).is_err());
        assert!(split(&"!".repeat(DEEPEST)).is_ok(), "an operator counts one");
        assert!(split(&"!".repeat(DEEPEST + 1)).is_err());
    }

    #[test]
    fn operands_after_a_deep_one_count_too() {
        // The operators come after each inner bracket. When that bracket opened, they did not yet
        // count for the depth.
        let level = |inner: String| format!("({inner}{})", " && x".repeat(20));
        let nested = (0..5).fold("x".to_owned(), |inner, _| level(inner));
        assert!(split(&nested).is_err());
        assert!(split(&format!("x{} && y", ".a".repeat(60))).is_ok());
        assert!(split(&format!("x{}{}", ".a".repeat(60), " && y".repeat(60))).is_err());
    }

    #[test]
    fn refuses_brackets_that_do_not_match() {
        for (text, column) in [("(]", 2), ("a)", 2), ("(a;)", 3), ("{(a}", 4), ("a[", 3)] {
            assert_eq!(split(text).unwrap_err().column, column, "{text}");
        }
        for text in ["a // (\r (;", "é", "\"a", "a | b", "\"\\\n\""] {
            assert!(split(text).is_err(), "{text}");
        }
    }
}
