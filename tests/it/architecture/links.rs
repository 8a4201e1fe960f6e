//! Checks the documentation's links: each relative link leads to a file, each anchor to a heading,
//! each mention of a page in code leads to that page, and each path on a page about the code exists.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use regex::Regex;

use super::root;

/// A link, or the definition of a link's target, with the target.
static LINK: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:\]\(|^\[[^\]]+\]: )([^)\s]+)"));
/// The path of a page from the root of the repository. The service's own paths begin with `/docs`.
static MENTION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?m)(?:^|[^/\w])(docs/[a-z0-9/-]+\.md)\b"));
/// A link, with its text.
static TEXT: LazyLock<Regex> = LazyLock::new(|| pattern(r"\[([^\]]*)\]\([^)]*\)"));
/// A path in backticks: of a folder, or of a file with code.
static PATH: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"`([a-z0-9_.-]+(?:/[a-z0-9_.-]+)*(?:/|\.rs|\.proto|\.sql))`"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

/// Adds every file at or below `path` that people write.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            let hidden = name.starts_with('.') && name != ".github";
            if !hidden && name != "target" && name != "node_modules" {
                files(&path, found);
            }
        } else {
            found.push(path);
        }
    }
}

fn written() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(root(), &mut found);
    found.sort();
    found
}

/// Returns the lines outside blocks of code, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut code = false;
    let mut lines = Vec::new();
    for (place, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code {
            lines.push((place + 1, line));
        }
    }
    lines
}

/// Returns the anchors of a page's headings, in the form that GitHub gives them.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(page) {
        let title = line.trim_start_matches('#');
        if title == line || !title.starts_with(' ') {
            continue;
        }
        let title = TEXT.replace_all(title.trim(), "$1").to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|number| format!("{anchor}-{number}"));
        let mut names = std::iter::once(anchor.clone()).chain(again);
        anchors.insert(names.find(|name| !anchors.contains(name)).unwrap());
    }
    anchors
}

/// Returns the fault of a link on this page, if it has one.
fn fault(page: &Path, link: &str) -> Option<&'static str> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { page.to_owned() } else { page.parent().unwrap().join(path) };
    if !target.exists() {
        return Some("there is no such file");
    }
    let is_absent = || !anchors(&fs::read_to_string(&target).unwrap()).contains(anchor);
    (!anchor.is_empty() && is_absent()).then_some("the page has no such heading")
}

/// Returns the files below `docs` that a page links to.
fn links(page: &Path) -> BTreeSet<PathBuf> {
    let folder = page.parent().unwrap();
    let text = fs::read_to_string(page).unwrap();
    let targets = LINK.captures_iter(&text).map(|found| found.extract::<1>().1[0]);
    let paths = targets.map(|link| folder.join(link.split('#').next().unwrap()));
    paths.filter(|path| path.exists()).map(|path| path.canonicalize().unwrap()).collect()
}

#[test]
fn each_link_leads_to_a_file_and_a_heading() {
    let (mut links, mut faults) = (0, Vec::new());
    for page in written().iter().filter(|path| path.extension().is_some_and(|e| e == "md")) {
        let text = fs::read_to_string(page).unwrap();
        for (line, prose) in prose(&text) {
            for link in LINK.captures_iter(prose).map(|found| found.extract::<1>().1[0]) {
                if link.contains("://") || link.starts_with("mailto:") {
                    continue;
                }
                links += 1;
                if let Some(fault) = fault(page, link) {
                    let page = page.strip_prefix(root()).unwrap().display();
                    faults.push(format!("{page}:{line}: {link}: {fault}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(links > 200, "{links}");
}

/// A reader finds each page from docs/README.md, in at most two steps.
#[test]
fn each_page_is_listed_for_its_readers() {
    let contents = root().join("docs/README.md").canonicalize().unwrap();
    let mut pages = Vec::new();
    files(contents.parent().unwrap(), &mut pages);
    let mut listed = links(&contents);
    let lists = listed.iter().filter(|page| page.ends_with("README.md"));
    let further: Vec<_> = lists.flat_map(|page| links(page)).collect();
    listed.extend(further);
    pages.retain(|page| *page != contents && !listed.contains(page));
    assert!(pages.is_empty(), "docs/README.md does not list {pages:?}");
}

#[test]
fn each_mentioned_page_is_there() {
    let (mut mentions, mut faults) = (0, Vec::new());
    for file in written() {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for page in MENTION.captures_iter(&text).map(|found| found.extract::<1>().1[0]) {
            mentions += 1;
            if !root().join(page).exists() {
                faults.push(format!("{}: {page}", file.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(mentions > 50, "{mentions}");
}

/// Each path in ARCHITECTURE.md's table of features leads to a file or folder.
#[test]
fn folders_of_features_are_there() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, table) = page.split_once("## Features and their folders").unwrap();
    let table = table.split("\n## ").next().unwrap();
    let (mut folders, mut faults) = (0, Vec::new());
    for row in table.lines().filter(|line| line.starts_with("| ")) {
        for (column, cell) in row.split('|').skip(2).enumerate() {
            for path in cell.split('`').skip(1).step_by(2) {
                folders += 1;
                let path = match path.split_once('/').filter(|_| column > 0) {
                    Some((name, rest)) => format!("crates/{name}/src/{rest}"),
                    None => format!("proto/authority/{path}"),
                };
                if !root().join(&path).exists() {
                    faults.push(path);
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(folders > 50, "{folders}");
}

/// Each path in backticks on a page about the code leads to a file or folder. Pages may leave out
/// the start of a path and the `src/` of a crate: `graph/tail.rs`.
#[test]
fn paths_on_pages_about_the_code_are_there() {
    let files = written();
    let there: BTreeSet<_> = files.iter().flat_map(|file| file.ancestors()).collect();
    let is_there = |path: &str| {
        let source = path.replacen('/', "/src/", 1);
        there.iter().any(|known| known.ends_with(path) || known.ends_with(&source))
    };
    let is_about_code = |page: &Path| {
        let page = page.strip_prefix(root()).unwrap();
        let is_readme = page.starts_with("crates") && page.ends_with("README.md");
        page.ends_with("ARCHITECTURE.md") || page.starts_with("docs/internals") || is_readme
    };
    let (mut paths, mut faults) = (BTreeSet::new(), Vec::new());
    for page in files.iter().filter(|file| is_about_code(file)) {
        let Ok(text) = fs::read_to_string(page) else { continue };
        for (line, prose) in prose(&text) {
            for path in PATH.captures_iter(prose).map(|found| found.extract::<1>().1[0]) {
                if paths.insert(path.to_owned()) && !is_there(path) {
                    let page = page.strip_prefix(root()).unwrap().display();
                    faults.push(format!("{page}:{line}: {path}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(paths.len() > 200, "{}", paths.len());
}

#[test]
fn headings_have_the_anchors_of_github() {
    let page =
        "# The *log*, [signed](a.md)\n```\n# code\n```\n## `a_b` and c-d\n## The log, signed\n";
    let expected = ["the-log-signed", "a_b-and-c-d", "the-log-signed-1"];
    assert_eq!(anchors(page), BTreeSet::from(expected.map(str::to_owned)));
}
