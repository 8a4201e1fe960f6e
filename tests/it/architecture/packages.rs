//! Checks the names of the packages for npm and `PyPI`.

use std::fs;

use super::root;

/// Returns the package's name from the first line about a name.
#[track_caller]
fn name(file: &str) -> String {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let mut lines = text.lines().map(|line| line.trim_start_matches([' ', '"']));
    let line = lines.find(|line| line.to_lowercase().starts_with("name")).unwrap();
    let (_, name) = line.split_once([':', '=']).unwrap();
    name.trim_matches([' ', '"', ',']).to_owned()
}

/// `npx agent-authority` and `uvx agent-authority` start the service.
#[test]
fn the_launchers_and_the_libraries_have_different_names() {
    for (launcher, library, name_of_library) in [
        ("deploy/npm/package.json", "sdk/typescript/package.json", "@agent-authority/sdk"),
        ("deploy/python/METADATA", "sdk/python/pyproject.toml", "agent-authority-sdk"),
    ] {
        assert_eq!(name(launcher), "agent-authority");
        assert_eq!(name(library), name_of_library);
    }
}
