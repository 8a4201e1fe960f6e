//! The pages of the documentation: the Markdown of `docs/`, except the folder for contributors.
//!
//! `docs/guides/policies.md` is the page `/docs/guides/policies`, and `docs/README.md` is
//! [`INDEX`].

use askama::Template;

use super::markdown::{Rendered, Section, Target, render};

/// The path of the index below `/docs/`.
const INDEX: &str = "guides";
/// The path below `docs/` and the text of each page, sorted.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/documentation.rs"));
/// The folders in the order in which readers look for them.
const FOLDERS: [(&str, &str); 5] = [
    ("", "Overview"),
    ("guides", "Guides"),
    ("guides/adapters", "Adapters"),
    ("reference", "Reference"),
    ("operations", "Operations"),
];

#[derive(Template)]
#[template(path = "reference/documentation.html")]
struct Page<'a> {
    title: &'a str,
    html: &'a str,
    path: &'a str,
    folders: &'a [Folder],
    sections: &'a [Section],
}

struct Folder {
    name: &'static str,
    /// The address and the title of each page.
    pages: Vec<(String, String)>,
}

/// Renders every page, by its path below `/docs/`.
pub(super) fn pages() -> Vec<(String, askama::Result<String>)> {
    let all: Vec<_> = PAGES.iter().map(|(file, text)| (*file, rendered(file, text))).collect();
    let folders = FOLDERS.map(|(folder, name)| {
        let own = all.iter().filter(|(file, _)| parent(file) == folder);
        Folder { name, pages: own.map(|(file, page)| (path(file), page.title.clone())).collect() }
    });
    let pages = all.iter().map(|(file, page)| {
        let path = path(file);
        let html = Page {
            title: &page.title,
            html: &page.html,
            path: &path,
            folders: &folders,
            sections: &page.sections,
        };
        let html = html.render();
        (path, html)
    });
    pages.collect()
}

fn rendered(file: &str, text: &str) -> Rendered {
    render(text, &|to| target(parent(file), to))
}

fn parent(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The path of a page below `/docs/`.
fn path(file: &str) -> String {
    match file.trim_end_matches(".md") {
        "README" => INDEX.to_owned(),
        path => path.to_owned(),
    }
}

/// Returns the target of a link from a page in this folder of `docs/`: another page, or a file that
/// is only in the source.
fn target(folder: &str, to: &str) -> Target {
    let (file, anchor) =
        to.split_once('#').map_or((to, None), |(file, anchor)| (file, Some(anchor)));
    let mut path = vec!["docs"];
    path.extend(folder.split('/').filter(|part| !part.is_empty()));
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(path.pop()),
            part => path.push(part),
        }
    }
    let path = path.join("/");
    let below = path.strip_prefix("docs").map(|below| below.trim_start_matches('/'));
    let page = below.and_then(|below| {
        let is_folder = FOLDERS.iter().any(|(folder, _)| *folder == below);
        let is_page = PAGES.iter().any(|(page, _)| *page == below);
        if is_folder { Some(INDEX.to_owned()) } else { is_page.then(|| self::path(below)) }
    });
    let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
    match page {
        Some(page) => Target::Address(format!("/docs/{page}{anchor}")),
        None => Target::Source(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(folder: &str, to: &str) -> String {
        match target(folder, to) {
            Target::Address(address) => address,
            Target::Source(path) => format!("source: {path}"),
        }
    }

    #[test]
    fn links_between_files_are_links_between_pages() {
        assert_eq!(address("guides", "policies.md"), "/docs/guides/policies");
        assert_eq!(
            address("guides", "../reference/decision.md#codes"),
            "/docs/reference/decision#codes"
        );
        assert_eq!(address("", "guides/policies.md"), "/docs/guides/policies");
        assert_eq!(address("", "operations/"), "/docs/guides");
        assert_eq!(address("guides", "../internals/log.md#x"), "source: docs/internals/log.md");
        assert_eq!(address("guides", "../../EVIDENCE.md"), "source: EVIDENCE.md");
        assert_eq!(address("guides", "../../../../a/b.md"), "source: a/b.md");
    }

    #[test]
    fn only_pages_for_contributors_are_not_served() {
        assert!(PAGES.len() > 15, "{}", PAGES.len());
        for (file, text) in PAGES {
            assert!(!file.starts_with("internals"), "{file}");
            assert!(text.starts_with("# "), "{file} has no title");
        }
    }
}
