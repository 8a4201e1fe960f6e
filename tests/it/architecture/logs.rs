//! Checks every line that the service can log: its message is a constant sentence, and
//! `docs/reference/logs.md` has each field and each message of an error or a warning.

use std::{collections::BTreeSet, fs, mem};

use regex::Regex;

use super::{files, root};

const PAGE: &str = "docs/reference/logs.md";

/// A call that logs a line.
struct Line {
    place: String,
    level: String,
    message: String,
    fields: Vec<String>,
}

/// Splits the arguments of a macro. `text` begins after the opening parenthesis.
fn arguments(text: &str) -> Vec<String> {
    let (mut arguments, mut current) = (Vec::new(), String::new());
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    for letter in text.chars() {
        if in_text {
            in_text = escaped || letter != '"';
            escaped = !escaped && letter == '\\';
        } else {
            match letter {
                ')' | ']' | '}' if depth == 0 => break,
                ',' if depth == 0 => {
                    arguments.push(mem::take(&mut current));
                    continue;
                }
                '"' => in_text = true,
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                _ => {}
            }
        }
        current.push(letter);
    }
    arguments.push(current);
    let arguments = arguments.iter().map(|argument| argument.trim().to_owned());
    arguments.filter(|argument| !argument.is_empty()).collect()
}

/// Returns a field's name: `tenant.id` of `tenant.id = %id`, `error` of `%error`.
fn field(argument: &str) -> String {
    let name = argument.split_once('=').map_or(argument, |(name, _)| name);
    name.trim().trim_start_matches(['%', '?']).trim_matches('"').to_owned()
}

fn lines() -> Vec<Line> {
    let call = Regex::new(r"\b(tracing::)?(error|warn|info|debug|trace)!\(").unwrap();
    let broken = Regex::new(r"\\\n\s*").unwrap();
    let mut found = Vec::new();
    for file in ["src", "crates"].iter().flat_map(|folder| files(folder)) {
        let text = fs::read_to_string(root().join(&file)).unwrap();
        for call in call.captures_iter(&text) {
            let place = format!("{}: {}", file.display(), &call[0]);
            assert!(call.get(1).is_some(), "{place} must be written as `tracing::{}!`", &call[2]);
            let mut fields = arguments(&text[call.get(0).unwrap().end()..]);
            let message = fields.pop().unwrap_or_default();
            let message = message.strip_prefix('"').and_then(|message| message.strip_suffix('"'));
            let message = message.unwrap_or_else(|| panic!("{place} must end with a message"));
            found.push(Line {
                place,
                level: call[2].to_owned(),
                message: broken.replace_all(message, "").into_owned(),
                fields: fields.iter().map(|argument| field(argument)).collect(),
            });
        }
    }
    found
}

/// Returns the words in backticks of the first column of the table below a heading.
fn first_column(page: &str, heading: &str) -> BTreeSet<String> {
    let section = page.split(&format!("\n## {heading}\n")).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let first = rows.filter_map(|row| row.split(" | ").next());
    first
        .flat_map(|cell| cell.split('`').step_by(2).map(str::to_owned).collect::<Vec<_>>())
        .filter(|word| !word.is_empty())
        .collect()
}

#[track_caller]
fn assert_same(heading: &str, page: &BTreeSet<String>, source: &BTreeSet<String>) {
    let missing: Vec<_> = source.difference(page).collect();
    let obsolete: Vec<_> = page.difference(source).collect();
    assert!(missing.is_empty() && obsolete.is_empty(), "{heading}: {missing:#?} {obsolete:#?}");
}

#[test]
fn the_page_has_every_message_and_field() {
    let (lines, page) = (lines(), fs::read_to_string(root().join(PAGE)).unwrap());
    for (heading, level) in [("Errors", "error"), ("Warnings", "warn")] {
        let lines = lines.iter().filter(|line| line.level == level);
        let messages: BTreeSet<_> = lines.map(|line| line.message.clone()).collect();
        assert!(messages.len() > 40, "{heading}: {}", messages.len());
        assert_same(heading, &first_column(&page, heading), &messages);
    }
    let fields: BTreeSet<_> = lines.into_iter().flat_map(|line| line.fields).collect();
    assert_same("Fields", &first_column(&page, "Fields"), &fields);
}

#[test]
fn a_message_is_a_constant_sentence() {
    for Line { place, message, .. } in lines() {
        let is_constant = !message.contains(['{', '`', '\\']);
        let is_sentence = message.starts_with(|first: char| first.is_ascii_lowercase());
        assert!(is_constant && is_sentence && !message.ends_with('.'), "{place} {message}");
    }
}

#[test]
fn arguments_are_split_outside_texts_and_calls() {
    let split = arguments("%error, a.id = f(x, \"y)\"), \"it, \\\"too\\\"\"); rest(1, 2)");
    assert_eq!(split, ["%error", "a.id = f(x, \"y)\")", "\"it, \\\"too\\\"\""]);
    assert_eq!(split.iter().map(|one| field(one)).take(2).collect::<Vec<_>>(), ["error", "a.id"]);
}
