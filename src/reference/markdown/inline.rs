//! The text of a block: code, links, emphasis and line breaks.

use std::fmt::Write as _;

use super::{Page, Target, escape};

impl Page<'_> {
    /// Returns text as HTML.
    pub(super) fn spans(&self, text: &str) -> String {
        let mut out = String::new();
        let mut at = 0;
        while let Some(letter) = text[at..].chars().next() {
            let rest = &text[at..];
            let before = text[..at].chars().next_back();
            at += if let Some((code, length)) = code(rest) {
                out.push_str("<code>");
                escape(&mut out, &code);
                out.push_str("</code>");
                length
            } else if let Some(literal) = escaped(rest) {
                if literal == '\n' {
                    out.push_str("<br>\n");
                } else {
                    escape(&mut out, literal.encode_utf8(&mut [0; 4]));
                }
                1 + literal.len_utf8()
            } else if let Some(length) = self.link(&mut out, rest) {
                length
            } else if let Some((element, inner, length)) = emphasis(rest, before) {
                let inner = self.spans(inner);
                let _ = write!(out, "<{element}>{inner}</{element}>");
                length
            } else if let Some(blanks) = line_break(rest) {
                out.push_str("<br>\n");
                blanks
            } else {
                let run = if ['*', '_', '`'].contains(&letter) { run(rest, letter) } else { 1 };
                let length = run.max(letter.len_utf8());
                escape(&mut out, &rest[..length]);
                length
            };
        }
        out
    }

    /// Appends the link with which the text begins, and returns its length.
    fn link(&self, out: &mut String, text: &str) -> Option<usize> {
        if let Some(url) = text.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            let url = url.0;
            let is_url = is_web(url) && !url.contains(char::is_whitespace);
            if is_url {
                anchor(out, url, &escaped_text(url));
            }
            return is_url.then_some(url.len() + 2);
        }
        let inner = bracketed(text)?;
        let after = &text[inner.len() + 2..];
        let (to, length) = if let Some(rest) = after.strip_prefix('(') {
            let (to, _) = rest.split_once(')')?;
            (to.trim(), to.len() + 2)
        } else if let Some(label) = bracketed(after).filter(|label| !label.is_empty()) {
            (*self.references.get(&label_of(label))?, label.len() + 2)
        } else {
            (*self.references.get(&label_of(inner))?, 0)
        };
        let html = self.spans(inner);
        if is_web(to) || to.starts_with(['#', '/']) {
            anchor(out, to, &html);
        } else if to.split(['/', '#']).next().unwrap_or_default().contains(':') {
            // Another scheme, such as `javascript:`.
            out.push_str(&html);
        } else {
            match (self.target)(to) {
                Target::Address(address) => anchor(out, &address, &html),
                Target::Source(path) => {
                    out.push_str(&html);
                    if plain(inner) != path {
                        let path = escaped_text(&path);
                        let _ = write!(out, " (<code>{path}</code> in the source)");
                    }
                }
            }
        }
        Some(inner.len() + 2 + length)
    }
}

/// Returns the text without its marks: the title of a page, the text of a heading.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        let before = text[..at].chars().next_back();
        at += if let Some((code, length)) = code(rest) {
            out.push_str(&code);
            length
        } else if let Some(literal) = escaped(rest) {
            out.push(literal);
            1 + literal.len_utf8()
        } else if let Some((_, inner, length)) = emphasis(rest, before) {
            out.push_str(&plain(inner));
            length
        } else if let Some(inner) = bracketed(rest) {
            out.push_str(&plain(inner));
            let after = &rest[inner.len() + 2..];
            let to = after.strip_prefix('(').and_then(|rest| rest.split_once(')'));
            inner.len() + 2 + to.map_or(0, |(to, _)| to.len() + 2)
        } else {
            out.push(letter);
            letter.len_utf8()
        };
    }
    out
}

fn anchor(out: &mut String, to: &str, html: &str) {
    out.push_str("<a href=\"");
    escape(out, to);
    let _ = write!(out, "\">{html}</a>");
}

fn escaped_text(text: &str) -> String {
    let mut out = String::new();
    escape(&mut out, text);
    out
}

fn is_web(to: &str) -> bool {
    to.starts_with("https://") || to.starts_with("http://")
}

/// Returns a label in lower case, with its line breaks as spaces.
fn label_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

fn run(text: &str, mark: char) -> usize {
    text.len() - text.trim_start_matches(mark).len()
}

/// Returns the code with which the text begins, and its length with its marks.
fn code(text: &str) -> Option<(String, usize)> {
    let marks = run(text, '`');
    let mut at = marks;
    while marks > 0 && at < text.len() {
        let closing = run(&text[at..], '`');
        if closing == marks {
            let code = text[marks..at].replace('\n', " ");
            let inner = code.strip_prefix(' ').and_then(|code| code.strip_suffix(' '));
            let code = inner.filter(|code| !code.trim().is_empty()).unwrap_or(&code).to_owned();
            return Some((code, at + closing));
        }
        at += closing.max(text[at..].chars().next().map_or(1, char::len_utf8));
    }
    None
}

/// Returns the character after a backslash, if the backslash makes it literal.
fn escaped(text: &str) -> Option<char> {
    let next = text.strip_prefix('\\')?.chars().next()?;
    (next.is_ascii_punctuation() || next == '\n').then_some(next)
}

/// Returns the length of two or more spaces at a line's end, with the line's end.
fn line_break(text: &str) -> Option<usize> {
    let spaces = run(text, ' ');
    (spaces >= 2 && text[spaces..].starts_with('\n')).then_some(spaces + 1)
}

/// Returns the text between `[` and its `]`.
fn bracketed(text: &str) -> Option<&str> {
    let mut depth = 0;
    let mut at = 0;
    if !text.starts_with('[') {
        return None;
    }
    while at < text.len() {
        let rest = &text[at..];
        match rest.chars().next()? {
            '[' => depth += 1,
            ']' if depth == 1 => return Some(&text[1..at]),
            ']' => depth -= 1,
            _ => {}
        }
        at += skipped(rest);
    }
    None
}

/// Returns the length of the next character, or of the code with which the text begins.
fn skipped(text: &str) -> usize {
    let letter = text.chars().next().map_or(1, char::len_utf8);
    let literal = escaped(text).map(|literal| 1 + literal.len_utf8());
    code(text).map(|(_, length)| length).or(literal).unwrap_or(letter)
}

/// Returns the element, the inner text and the length of the emphasis with which the text begins.
fn emphasis(text: &str, before: Option<char>) -> Option<(&'static str, &str, usize)> {
    let mark = text.chars().next().filter(|mark| ['*', '_'].contains(mark))?;
    let is_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    // `_` within a word is a part of the word.
    if mark == '_' && is_word(before) {
        return None;
    }
    let marks = run(text, mark).min(2);
    let element = if marks == 2 { "strong" } else { "em" };
    if text[marks..].starts_with(char::is_whitespace) {
        return None;
    }
    let mut at = marks;
    while at < text.len() {
        let rest = &text[at..];
        let found = run(rest, mark);
        let follows_space = text[..at].ends_with(char::is_whitespace);
        let within = mark == '_' && is_word(rest[found..].chars().next());
        if found >= marks && found != 3 - marks && !follows_space && !within && at > marks {
            // The inner emphasis ends before the outer one.
            let end = at + found - marks;
            return Some((element, &text[marks..end], end + marks));
        }
        at += if found > 0 { found } else { skipped(rest) };
    }
    None
}
