//! Limits the length of functions, in lines of code: blank lines and comments don't count, and a
//! text counts as one line.

use std::fs;

use super::{GENERATED, code, files, root};

/// The longest function of the product, the build and their own tests.
const LONGEST: usize = 70;
/// The longest function in `tests/it`: a table of cases, or a rule of the second implementation
/// that follows the text of the specification.
const LONGEST_IN_TESTS: usize = 111;

#[test]
fn functions_are_short() {
    let (mut functions, mut faults) = (0, Vec::new());
    for (folder, longest) in [
        ("src", LONGEST),
        ("crates", LONGEST),
        ("gateway-rest", LONGEST),
        ("build", LONGEST),
        ("benches", LONGEST),
        ("tests", LONGEST_IN_TESTS),
    ] {
        for file in files(folder) {
            let text = fs::read_to_string(root().join(&file)).unwrap();
            let first = text.lines().next().unwrap_or_default();
            if GENERATED.iter().any(|mark| first.contains(mark)) {
                continue;
            }
            for (name, lines) in lengths(&code(&file)) {
                functions += 1;
                if lines > longest {
                    let file = file.display();
                    faults.push(format!("{file}: `{name}` has {lines} lines, {longest} at most"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert!(functions > 5_000, "{functions}");
}

/// Returns each function with the number of lines of its body.
fn lengths(code: &str) -> Vec<(&str, usize)> {
    let starts = code.match_indices("fn ").filter(|(at, _)| {
        let before = code[..*at].chars().next_back().unwrap_or(' ');
        before.is_whitespace() || before == '('
    });
    let functions = starts.filter_map(|(at, found)| {
        let rest = &code[at + found.len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        let body = body(rest)?;
        let lines = body.lines().filter(|line| !line.trim().is_empty()).count();
        (end > 0).then_some((&rest[..end], lines))
    });
    functions.collect()
}

/// Returns the text between the braces of a function; `None` for a declaration without a body.
fn body(function: &str) -> Option<&str> {
    let mut level = 0;
    let open = function.char_indices().find_map(|(at, letter)| {
        match letter {
            '(' | '[' => level += 1,
            ')' | ']' => level -= 1,
            _ => {}
        }
        (level == 0 && matches!(letter, '{' | ';')).then_some((at, letter))
    });
    let (open, _) = open.filter(|(_, letter)| *letter == '{')?;
    let mut level = 0;
    let close = function[open..].char_indices().find_map(|(at, letter)| {
        match letter {
            '{' => level += 1,
            '}' => level -= 1,
            _ => {}
        }
        (level == 0).then_some(open + at)
    });
    Some(&function[open + 1..close?])
}

#[test]
fn lines_of_bodies_are_counted() {
    let code = "trait A { fn a(&self) -> [u8; 2]; }\nfn b<T>(of: [T; 2]) {\n\n    if c {\n    }\n}\nfn d() { e() }";
    assert_eq!(lengths(code), [("b", 2), ("d", 1)]);
}
