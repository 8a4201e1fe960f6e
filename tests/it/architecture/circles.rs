//! Checks that the files of a crate do not use each other in circles: types are at the bottom,
//! functions above.
//!
//! A crate's root lists its files and re-exports their items. No file uses an item that the root
//! defines.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{after, code, files, paths, root};

/// The files of a crate by module path, each with the files that it uses.
type Uses = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

/// The maximum number of files of its crate that a file uses, except the root of a folder.
const MOST_USED: usize = 20;

#[test]
fn files_do_not_use_each_other_in_circles() {
    let mut faults = Vec::new();
    for source in sources() {
        for (file, used) in in_circles(uses(&source)) {
            let used: Vec<_> = used.iter().map(|path| path.join("::")).collect();
            let (source, file) = (source.display(), file.join("::"));
            faults.push(format!("{source}: `{file}` uses {}", used.join(", ")));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn no_file_uses_many_others() {
    let mut faults = Vec::new();
    for source in sources() {
        for (file, used) in uses(&source) {
            let (path, count) = (folder(&source, &file), used.len());
            if count > MOST_USED && !root().join(&path).is_dir() {
                faults.push(format!("{path} uses {count} files, {MOST_USED} at most"));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn no_file_uses_an_item_of_its_crates_root() {
    let mut faults = Vec::new();
    for source in sources() {
        let defined = defined(&code(&source.join("lib.rs")));
        for (file, path) in modules(&source) {
            for path in paths_used(&file, &product(&path)) {
                if let Some(name) = path.first().filter(|name| defined.contains(*name)) {
                    let (source, file) = (source.display(), file.join("::"));
                    faults.push(format!("{source}: `{file}` uses the root's `{name}`"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Returns the items that a root defines itself. An alias only names an item of a file.
fn defined(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in code.lines().filter(|line| !line.starts_with([' ', '#', '}'])) {
        let words: Vec<_> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let kinds = ["struct", "enum", "trait", "fn", "const", "static"];
        let pairs = words.windows(2).filter(|pair| kinds.contains(&pair[0]));
        found.extend(pairs.map(|pair| pair[1].to_owned()));
    }
    // A file may have the name of a function.
    for name in after(code, "mod ") {
        found.remove(name.split(';').next().unwrap_or_default());
    }
    found
}

/// The source folder of each crate.
fn sources() -> impl Iterator<Item = PathBuf> {
    let crates = root().join("crates").read_dir().unwrap();
    let crates = crates.map(|each| Path::new("crates").join(each.unwrap().file_name()).join("src"));
    crates.chain(["src".into(), "gateway-rest/src".into()])
}

/// Returns the path of a module: `crates/graph/src/tail`.
fn folder(source: &Path, module: &[String]) -> String {
    format!("{}/{}", source.display(), module.join("/"))
}

/// Returns the files of a crate by module path. Tests are omitted, because they may use any file.
fn modules(source: &Path) -> BTreeMap<Vec<String>, PathBuf> {
    let is_test = |file: &PathBuf| file.iter().any(|part| part == "tests" || part == "tests.rs");
    let all = files(source.to_str().unwrap()).into_iter().filter(|file| !is_test(file));
    all.filter_map(|file| Some((module_path(source, &file)?, file))).collect()
}

/// Returns a file's code without its tests.
fn product(file: &Path) -> String {
    // `pub(in crate::graph)` does not use the graph.
    let code = code(file).replace("(in ", "(in:");
    code.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned()
}

/// Returns the paths that a module uses, from the crate's root.
fn paths_used(module: &[String], code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let starts =
        [("crate::", &[][..]), ("super::", &module[..module.len() - 1]), ("self::", module)];
    for (start, above) in starts {
        for path in outermost(code, start).flat_map(paths) {
            let mut place = above.to_vec();
            for name in path {
                match name.as_str() {
                    "super" => drop(place.pop()),
                    "self" => {}
                    _ => place.push(name),
                }
            }
            found.push(place);
        }
    }
    found
}

/// Returns each file with the files that it uses.
fn uses(source: &Path) -> Uses {
    let modules = modules(source);
    let below = |module: &[String]| {
        let below = modules.keys().filter(|path| path.split_last().unwrap().1 == module);
        below.cloned().collect::<Vec<_>>()
    };
    let used =
        |module: &[String], file: &Path| {
            let code = product(file);
            let mut found = BTreeSet::new();
            for mut place in paths_used(module, &code) {
                // `graph::tail::READ` is reduced to the file `graph::tail`.
                while !place.is_empty() && !modules.contains_key(&place) {
                    place.pop();
                }
                found.insert(place);
            }
            // A folder's root names its files without `self`.
            found.extend(below(module).into_iter().filter(|file| {
                after(&code, &format!("{}::", file.last().unwrap())).next().is_some()
            }));
            found.retain(|place| !place.is_empty() && place != module);
            found
        };
    modules.iter().map(|(module, file)| (module.clone(), used(module, file))).collect()
}

/// Returns the text after each `start`, unless it is inside the group of another: in
/// `super::{super::a, b}` the inner `super` continues the path.
fn outermost<'a>(code: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    let mut end = 0;
    after(code, start).filter(move |rest| {
        let at = code.len() - rest.len();
        let is_inside = at < end;
        if !is_inside && rest.starts_with('{') {
            end = at + group(rest);
        }
        !is_inside
    })
}

/// Returns the length of a group, `{…}`.
fn group(text: &str) -> usize {
    let mut level = 0;
    let end = text.find(|letter| {
        level += i32::from(letter == '{') - i32::from(letter == '}');
        level == 0
    });
    end.unwrap_or(text.len())
}

/// Returns the module path of a file; `None` for the root of a crate.
fn module_path(source: &Path, file: &Path) -> Option<Vec<String>> {
    let path = file.strip_prefix(source).unwrap().with_extension("");
    let mut path: Vec<_> = path.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    path.pop_if(|name| *name == "mod");
    (path != ["lib"] && path != ["main"]).then_some(path)
}

/// Repeatedly removes files that use no other file or that no other file uses. The rest are in
/// circles.
fn in_circles(mut uses: Uses) -> Uses {
    loop {
        let used: BTreeSet<_> = uses.values().flatten().cloned().collect();
        let files: BTreeSet<_> = uses.keys().cloned().collect();
        let all = uses.len();
        uses.retain(|file, below| used.contains(file) && !below.is_disjoint(&files));
        if uses.len() == all {
            return uses;
        }
    }
}

#[test]
fn a_circle_is_found_and_a_chain_is_not() {
    let uses = |pairs: &[(&str, &str)]| -> Uses {
        let path = |name: &str| vec![name.to_owned()];
        pairs.iter().map(|(file, used)| (path(file), [path(used)].into())).collect()
    };
    assert!(in_circles(uses(&[("a", "b"), ("b", "c")])).is_empty());
    let found = in_circles(uses(&[("a", "b"), ("b", "c"), ("c", "b"), ("d", "a")]));
    assert_eq!(found.into_keys().flatten().collect::<Vec<_>>(), ["b", "c"]);
}

#[test]
fn a_root_defines_its_own_items_only() {
    let root = "mod routes;\npub use routes::table;\npub fn routes() {}\npub struct A;\nimpl A {\n    fn b() {}\n}\n";
    assert_eq!(defined(root).into_iter().collect::<Vec<_>>(), ["A"]);
}
