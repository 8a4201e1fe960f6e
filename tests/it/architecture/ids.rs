//! Checks that only the crate `ids` builds and parses the text of an id.

use std::{fs, path::Path};

use regex::Regex;

use super::{files, root};

/// Returns the code of a file without its comments and tests.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[test]
fn only_the_crate_of_ids_builds_and_parses_them() {
    let literal = Regex::new(r#"(=|\()\s*"svc:"#).unwrap();
    assert!(literal.is_match(r#"const PREFIX: &str = "svc:event:";"#));
    assert!(literal.is_match(r#"format!("svc:agent:{tenant}:{name}")"#));
    let sources = ["src", "crates"].into_iter().flat_map(files);
    let is_test = |file: &Path| file.iter().any(|part| part == "tests" || part == "tests.rs");
    let sources = sources.filter(|file| !file.starts_with("crates/ids") && !is_test(file));
    let faults: Vec<_> = sources
        .flat_map(|file| {
            let code = code(&file);
            let found = literal.find_iter(&code).map(|found| found.as_str().to_owned());
            found.map(|found| format!("{}: {found}", file.display())).collect::<Vec<_>>()
        })
        .collect();
    assert!(faults.is_empty(), "use the types of `authority_ids`:\n{}", faults.join("\n"));
}
