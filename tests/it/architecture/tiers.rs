//! Checks the lists by which `script/test` divides the tests into groups: each line names a module
//! or test that exists.

use std::{fs, path::Path};

use super::root;

const FOLDERS: [&str; 3] = ["tests/it", "gateway-rest/tests/it", "crates/webhook/tests/vectors"];

/// Returns whether the folder has the file of this module. If `name` is not empty, the file must
/// have this test.
fn is_in(folder: &Path, path: &[&str], name: &str) -> bool {
    let module = folder.join(path.join("/"));
    [module.with_extension("rs"), module.join("mod.rs")].iter().any(|file| {
        let code = fs::read_to_string(file).unwrap_or_default();
        !code.is_empty() && (name.is_empty() || code.contains(&format!("fn {name}()")))
    })
}

#[track_caller]
fn lines(file: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("tests").join(file)).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[test]
fn each_line_names_tests_that_are_there() {
    let outside = lines("outside.txt");
    for line in outside.iter().chain(&lines("alone.txt")).chain(&lines("slow.txt")) {
        let mut path: Vec<&str> = line.split("::").collect();
        let name = path.pop().unwrap();
        assert!(!path.is_empty(), "{line}: would also name tests of other modules");
        let is_there = |folder: &&str| is_in(&root().join(folder), &path, name);
        assert!(FOLDERS.iter().any(is_there), "{line}: there is no such module or test");
    }
    let is_outside = |line: &String| outside.contains(line);
    assert!(
        lines("alone.txt").iter().all(is_outside),
        "outside.txt must contain each line of alone.txt"
    );
}
