//! Checks which module may use which other module of its crate, and a few conventions. The
//! `Cargo.toml`s state the dependencies between crates, and the compiler checks those.
//!
//! [`MODULES`] documents the structure: a new entry is a decision about the structure of the
//! service.

mod circles;
mod functions;
mod guards;
mod ids;
mod links;
mod logs;
mod packages;
mod tiers;
mod words;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Source folders of the crates that have several layers of modules.
const SOURCES: [&str; 2] = ["crates/api/src", "src"];

/// Crates below api. A row has their names without `authority_`.
const BASE: &[&str] = &["config", "graph", "keys", "ledger", "process", "store"];
/// Modules of api that all services may use.
const API: &[&str] = &[
    "credentials",
    "deadline",
    "error",
    "idempotency",
    "identity",
    "page",
    "page_token",
    "rate_limit",
    "stream",
];

/// Each module, with the modules that it may use: of its own crate, of api and of [`BASE`].
const MODULES: &[(&str, &[&[&str]])] = &[
    // The server: the binary, its command line, and `app`, which connects all other modules.
    ("main", &[&["cli"]]),
    ("cli", &[&["app", "telemetry", "transport"], &["config", "process", "store"]]),
    (
        "app",
        &[
            &[
                "directory",
                "receipts",
                "reference",
                "routes",
                "telemetry",
                "theme",
                "transport",
                "widgets",
            ],
            API,
            BASE,
        ],
    ),
    ("receipts", &[&["transport"], API, BASE]),
    ("reference", &[&["directory"]]),
    ("widgets", &[&["transport"], API, BASE]),
    ("directory", &[&["transport"], API, BASE]),
    ("transport", &[&["config", "error", "process", "telemetry"]]),
    ("telemetry", &[&["config", "process"]]),
    ("routes", &[]),
    ("theme", &[]),
    // Api. `identity` uses the graph through a trait, and `graph` defines API keys.
    ("identity", &[&["error", "graph", "keys", "process", "rate_limit", "store", "unique_json"]]),
    ("idempotency", &[&["error", "identity", "keys", "process", "store"]]),
    ("credentials", &[&["error", "graph", "identity", "process"]]),
    ("stream", &[&["error", "rate_limit"]]),
    ("named_tenant", &[&["error", "identity", "store"]]),
    ("page", &[]),
    ("page_token", &[&["error", "identity", "keys", "process"]]),
    ("rate_limit", &[&["error", "process"]]),
    ("error", &[&["graph", "keys", "ledger", "store"]]),
    ("deadline", &[]),
    ("unique_json", &[]),
    ("lib", &[]),
];

/// Markers that show in a file's first line that the file is generated.
const GENERATED: &[&str] = &["@generated", "print-schema"];
/// File names that do not describe the content.
const EMPTY_NAMES: &[&str] = &["common", "helper", "helpers", "manager", "misc", "util", "utils"];

#[test]
fn modules_use_only_what_is_below_them() {
    let mut faults = Vec::new();
    for file in SOURCES.iter().flat_map(|source| files(source)) {
        let module = module(&file);
        let Some((_, may)) = MODULES.iter().find(|(name, _)| *name == module) else {
            faults.push(format!("{}: `{module}` has no row in MODULES", file.display()));
            continue;
        };
        for used in modules_used(&file) {
            if used != module && !may.iter().any(|group| group.contains(&used.as_str())) {
                faults.push(format!("{}: `{module}` must not use `{used}`", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn files_say_what_they_are_for_and_are_named_for_it() {
    let mut faults = Vec::new();
    for file in ["src", "crates", "tests", "gateway-rest", "build", "build.rs"]
        .iter()
        .flat_map(|f| files(f))
    {
        let text = fs::read_to_string(root().join(&file)).unwrap();
        let first = text.lines().next().unwrap_or_default();
        if GENERATED.iter().any(|mark| first.contains(mark)) {
            continue;
        }
        if !first.starts_with("//!") {
            faults.push(format!(
                "{}: must start with a `//!` comment that states its purpose",
                file.display()
            ));
        }
        let path = file.with_extension("");
        let mut words = path.iter().flat_map(|part| part.to_str().unwrap().split(['_', '-']));
        if let Some(word) = words.find(|word| EMPTY_NAMES.contains(word)) {
            faults.push(format!("{}: `{word}` is not a descriptive name", file.display()));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns every `.rs` file at or below `path`, relative to the repository.
fn files(path: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(path)];
    while let Some(path) = open.pop() {
        if path.is_dir() && path.file_name().unwrap() != "target" {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path.strip_prefix(root()).unwrap().to_owned());
        }
    }
    found.sort();
    found
}

/// Returns the path of the file within its crate's source folder: `graph/tail.rs`.
fn within(file: &Path) -> &Path {
    SOURCES.iter().find_map(|source| file.strip_prefix(source).ok()).unwrap()
}

/// Returns the module of the file: `graph` for `graph/tail.rs` and for `graph.rs`.
fn module(file: &Path) -> String {
    let first = within(file).iter().next().unwrap();
    Path::new(first).file_stem().unwrap().to_str().unwrap().to_owned()
}

/// Returns the number of `super`s that lead from the file to the crate's root.
fn depth(file: &Path) -> usize {
    let parts = within(file).iter().count();
    if file.ends_with("mod.rs") { parts - 1 } else { parts }
}

fn modules_used(file: &Path) -> BTreeSet<String> {
    let code = code(file);
    let mut used = BTreeSet::new();
    for start in ["crate::", "agent_authority::"] {
        for rest in after(&code, start) {
            used.extend(first_names(rest));
        }
    }
    let base =
        BASE.iter().filter(|name| after(&code, &format!("authority_{name}")).next().is_some());
    used.extend(base.map(|name| (*name).to_owned()));
    let known = |name: &String| MODULES.iter().any(|(module, _)| module == name);
    for rest in after(&code, &"super::".repeat(depth(file))) {
        used.extend(first_names(rest).filter(known));
    }
    if file.ends_with("lib.rs") {
        used.clear();
    }
    used
}

fn first_names(tree: &str) -> impl Iterator<Item = String> {
    let names = paths(tree).into_iter().filter_map(|path| path.into_iter().next());
    names.filter(|name| name != "self")
}

/// Returns the text after each `start`, unless `start` ends a longer path or name there.
fn after<'a>(code: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    code.match_indices(start).filter_map(move |(at, _)| {
        let before = code[..at].chars().next_back().unwrap_or(' ');
        let whole = !(before.is_alphanumeric() || before == '_' || before == ':');
        whole.then(|| &code[at + start.len()..])
    })
}

/// Returns the paths of a use tree: `{a::b, c::{d, e}}` has `a::b`, `c::d` and `c::e`.
fn paths(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim_start();
    if let Some(group) = tree.strip_prefix('{') {
        return parts(group).into_iter().flat_map(paths).collect();
    }
    let length = tree.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(tree.len());
    let (name, rest) = tree.split_at(length);
    let below = rest.strip_prefix("::").map(paths).unwrap_or_default();
    if below.is_empty() {
        return Vec::from_iter((!name.is_empty()).then(|| vec![name.to_owned()]));
    }
    below.into_iter().map(|path| [vec![name.to_owned()], path].concat()).collect()
}

/// Returns the text of a group up to its `}`, split at the commas outside inner groups.
fn parts(group: &str) -> Vec<&str> {
    let (mut parts, mut level, mut start) = (Vec::new(), 0, 0);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => level += 1,
            ',' | '}' if level == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
                if letter == '}' {
                    break;
                }
            }
            '}' => level -= 1,
            _ => {}
        }
    }
    parts
}

/// Returns the file without its comments and string literals, which may name any module.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let mut code = String::new();
    let mut rest = text.as_str();
    while let Some(next) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if next == '"' {
            quoted(rest)
        } else if rest.starts_with("r\"") || rest.starts_with("r#") && raw(rest).is_some() {
            raw(rest).unwrap()
        } else if let Some(end) = character(rest) {
            end
        } else {
            code.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        };
        code.push(' ');
        rest = &rest[skip..];
    }
    code
}

fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// Returns the length of `r"…"` or `r#"…"#`; `None` for a raw identifier.
fn raw(rest: &str) -> Option<usize> {
    let hashes = rest[1..].chars().take_while(|c| *c == '#').count();
    let body = rest[1 + hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = body.find(&close).unwrap_or(body.len() - close.len());
    Some(2 + hashes + end + close.len())
}

/// Returns the length of a character literal; `None` for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    let mut letters = inner.char_indices();
    let (_, first) = letters.next()?;
    let start = if first == '\\' {
        letters.next().map(|(at, c)| at + c.len_utf8())?
    } else {
        first.len_utf8()
    };
    let end = if first == '\\' { start + inner[start..].find('\'')? } else { start };
    inner[end..].starts_with('\'').then_some(end + 2)
}

#[test]
fn paths_are_found_wherever_they_stand() {
    let named = |tree| paths(tree).iter().map(|path| path.join(".")).collect::<Vec<_>>();
    assert_eq!(
        named("store::{Db, pool::{self, Pool}};"),
        ["store.Db", "store.pool.self", "store.pool.Pool"]
    );
    assert_eq!(
        named("{\n config::Config,\n error::{A, B},\n}; x, y"),
        ["config.Config", "error.A", "error.B"]
    );
    let found: Vec<_> = after("use crate::a; mycrate::b; $crate::c; x::crate::d", "crate::")
        .map(|rest| &rest[..1])
        .collect();
    assert_eq!(found, ["a", "c"]);
}
