//! Checks that the files of a crate do not use each other in circles: types are at the bottom,
//! functions above.
//!
//! A crate's root and a folder's `mod.rs` are exempt: they list their files and hold shared items.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{after, code, files, paths, root};

/// The files of a crate by module path, each with the files that it uses.
type Uses = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

#[test]
fn files_do_not_use_each_other_in_circles() {
    let mut faults = Vec::new();
    let crates = root().join("crates").read_dir().unwrap();
    let crates = crates.map(|each| Path::new("crates").join(each.unwrap().file_name()).join("src"));
    for source in crates.chain(["src".into(), "gateway-rest/src".into()]) {
        for (file, used) in in_circles(uses(&source)) {
            let used: Vec<_> = used.iter().map(|path| path.join("::")).collect();
            let (source, file) = (source.display(), file.join("::"));
            faults.push(format!("{source}: `{file}` uses {}", used.join(", ")));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Returns each file with the files that it uses. Tests are omitted, because they may use any file.
fn uses(source: &Path) -> Uses {
    let is_test = |file: &PathBuf| file.iter().any(|part| part == "tests" || part == "tests.rs");
    let all = files(source.to_str().unwrap()).into_iter().filter(|file| !is_test(file));
    let modules: BTreeMap<_, _> =
        all.filter_map(|file| Some((module_path(source, &file)?, file))).collect();
    let used = |module: &[String], file: &Path| {
        let code = code(file);
        let code = code.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let mut found = BTreeSet::new();
        for (start, above) in [("crate::", &[][..]), ("super::", &module[..module.len() - 1])] {
            for path in after(code, start).flat_map(paths) {
                let mut place = above.to_vec();
                for name in path {
                    match name.as_str() {
                        "super" => drop(place.pop()),
                        "self" => {}
                        _ => place.push(name),
                    }
                }
                // `graph::tail::READ` is reduced to the file `graph::tail`.
                while !place.is_empty() && !modules.contains_key(&place) {
                    place.pop();
                }
                found.insert(place);
            }
        }
        found.retain(|place| !place.is_empty() && place != module);
        found
    };
    modules.iter().map(|(module, file)| (module.clone(), used(module, file))).collect()
}

/// Returns the module path of a file; `None` for the root of a crate or a folder.
fn module_path(source: &Path, file: &Path) -> Option<Vec<String>> {
    let whole = root().join(file).with_extension("");
    let is_root = ["mod", "lib", "main"].iter().any(|name| whole.ends_with(name)) || whole.is_dir();
    let path = file.strip_prefix(source).unwrap().with_extension("");
    (!is_root).then(|| path.iter().map(|part| part.to_str().unwrap().to_owned()).collect())
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
