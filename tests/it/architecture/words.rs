//! Limits the share of prose that is hard to read: comments, documentation and messages that match
//! a pattern of mannered English. Rewrite a sentence that matches. Avoiding the pattern is not
//! enough if the sentence still has to be read twice.

use std::{fs, path::Path};

use regex::Regex;

use super::root;

/// Each pattern, with what to write instead.
const PATTERNS: [(&str, &str); 7] = [
    (
        r"\b(what|whatever|whoever|whichever) (is|are|was|were|has|have|the|an?|it|they|no|of|does|can|may|must|ends?|waits?|comes?|follows?)\b",
        "name the noun: `the affected delegations`",
    ),
    (r"\b(those|ones|the one) (of|that|which|who)\b", "repeat the noun"),
    (r"\b(nobody|nothing|nowhere|whoever)\b", "`no user`, `not`, `must be`"),
    (r"\b(says?|said|tells?|told)\b", "`shows`, `returns`, `reports`, `states`"),
    (r"\b(whom|whose)\b", "a second sentence"),
    (r"\b(all the same|thereby|whereby|hereafter|meanwhile|likewise|for ever)\b", "plain words"),
    (r", (and so|and nothing|and nobody|too)\b", "two sentences"),
];

/// Folders and files, with the maximum number of matching lines per thousand.
const BOUNDS: [(&str, usize); 12] = [
    ("README.md", 0),
    ("CONTRIBUTING.md", 0),
    ("SECURITY.md", 0),
    ("ARCHITECTURE.md", 0),
    ("CHANGELOG.md", 10),
    ("docs", 5),
    ("proto/authority", 5),
    ("src", 5),
    ("crates", 5),
    ("gateway-rest", 5),
    ("tests", 5),
    ("migrations", 20),
];
const LEFT_OUT: [&str; 3] = ["tests/it/console", "tests/features", "snapshots"];

/// Returns the prose of a line: a comment, or a line of Markdown without its code.
fn prose<'l>(path: &Path, line: &'l str) -> Option<&'l str> {
    let line = line.trim();
    let marks: &[&str] = match path.extension()?.to_str()? {
        "md" => return Some(line),
        "rs" => &["//!", "///", "//"],
        "proto" => &["//"],
        "sql" => &["--"],
        _ => return None,
    };
    marks.iter().find_map(|mark| line.strip_prefix(mark))
}

fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

fn each(path: &Path, visit: &mut dyn FnMut(&Path, usize, &str)) {
    let shown = path.strip_prefix(root()).unwrap_or(path);
    if LEFT_OUT.iter().any(|left_out| shown.to_string_lossy().contains(left_out)) {
        return;
    }
    if path.is_dir() {
        let mut entries: Vec<_> = fs::read_dir(path).unwrap().map(|e| e.unwrap().path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| each(entry, visit));
    } else if let Ok(text) = fs::read_to_string(path) {
        for (place, line) in text.lines().enumerate() {
            if let Some(prose) = prose(path, line) {
                visit(shown, place + 1, &without_code(prose));
            }
        }
    }
}

#[test]
fn prose_is_plain() {
    let patterns =
        PATTERNS.map(|(pattern, repair)| (Regex::new(&format!("(?i){pattern}")).unwrap(), repair));
    let mut faults = Vec::new();
    for (place, bound) in BOUNDS {
        let (mut lines, mut hits) = (0, Vec::new());
        each(&root().join(place), &mut |path, line, prose| {
            if prose.trim().len() < 12 {
                return;
            }
            lines += 1;
            if let Some((_, repair)) = patterns.iter().find(|(pattern, _)| pattern.is_match(prose))
            {
                hits.push(format!("{}:{line}:{prose} -> {repair}", path.display()));
            }
        });
        assert!(lines > 20, "{place} has no prose");
        if hits.len() * 1000 > bound * lines {
            faults.push(format!(
                "{place}: {} of {lines} lines; at most {bound} of 1,000\n{}",
                hits.len(),
                hits.join("\n")
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
