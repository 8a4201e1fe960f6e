//! Checks the table of guards (`tests/guards`): each guard's text is in the file that its entry
//! names, and its test exists. `script/guards` removes each guard and runs its test.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde::Deserialize;

use super::root;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    guard: Vec<Guard>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Guard {
    name: String,
    protects: String,
    file: PathBuf,
    text: String,
    without: String,
    test: String,
    /// The crate of the unit test; `None` for a test in `tests/it`.
    #[serde(rename = "crate")]
    of: Option<PathBuf>,
    fails: String,
    /// The reason why this guard is removed without others at the same time.
    alone: Option<String>,
}

impl Guard {
    /// Returns the fault of the entry, if any.
    fn fault(&self) -> Option<String> {
        let code = fs::read_to_string(root().join(&self.file)).unwrap_or_default();
        let count = code.matches(&self.text).count();
        if count != 1 {
            return Some(format!("its text occurs {count} times in {}", self.file.display()));
        }
        let reasons = [Some(&self.protects), self.alone.as_ref()];
        let are_told = reasons.into_iter().flatten().all(|reason| reason.ends_with('.'));
        if self.text == self.without || self.fails.is_empty() || !are_told {
            return Some(
                "`without` equals `text`, `fails` is empty, or a reason does not end in a period"
                    .to_owned(),
            );
        }
        (!self.has_test()).then(|| format!("there is no test `{}`", self.test))
    }

    /// Returns whether a file of the test's module has a test of this name.
    fn has_test(&self) -> bool {
        let folder = match &self.of {
            Some(of) => root().join(of).join("src"),
            None => root().join("tests/it"),
        };
        let mut path: Vec<&str> = self.test.split("::").collect();
        let name = path.pop().unwrap_or_default();
        let declared = format!("fn {name}()");
        // A module may be written inside the file of its parent module.
        while !path.is_empty() {
            let module = folder.join(path.join("/"));
            for file in [module.with_extension("rs"), module.join("mod.rs")] {
                let code = fs::read_to_string(file).unwrap_or_default();
                let mut before = code.split(&declared).next().unwrap_or_default().lines().rev();
                if code.contains(&declared) {
                    return before.by_ref().take(4).any(|line| line.contains("test"));
                }
            }
            path.pop();
        }
        false
    }
}

#[test]
fn each_guard_is_where_the_table_says_and_has_its_test() {
    let mut faults = Vec::new();
    let mut names = BTreeSet::new();
    for file in fs::read_dir(root().join("tests/guards")).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let table: Table = basic_toml::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        for guard in table.guard {
            faults.extend(guard.fault().map(|fault| format!("{}: {fault}", guard.name)));
            assert!(names.insert(guard.name.clone()), "duplicate guard: {}", guard.name);
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert!(names.len() > 30, "{names:?}");
}
