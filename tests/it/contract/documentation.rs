//! The pages of `docs/`, as the service serves them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use regex::Regex;

use crate::support::{TestApp, http};

const INTERNALS: &str = "internals";
/// The script for the choice of light or dark.
const THEME: &str = "<script src=\"/theme/choice.js\"></script>";
/// The elements of a page. Markdown can produce no others.
const ELEMENTS: &str = "a blockquote br code div em h1 h2 h3 h4 h5 h6 hr li main ol p pre strong table \
                        tbody td th thead tr ul";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

/// The path below `docs/` of each file with Markdown.
fn files() -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![root()], Vec::new());
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path.strip_prefix(root()).unwrap().to_owned());
        }
    }
    found.sort();
    found
}

fn is_served(file: &Path) -> bool {
    !file.starts_with(INTERNALS)
}

/// The address of a page, from its file's path below `docs/`.
fn address(file: &Path) -> String {
    match file.with_extension("").to_str().unwrap() {
        "README" => "/docs/guides".to_owned(),
        path => format!("/docs/{path}"),
    }
}

/// The pages that were fetched, by address; `None` for another status than 200.
struct Pages<'a> {
    app: &'a TestApp,
    known: BTreeMap<String, Option<String>>,
}

impl Pages<'_> {
    async fn get(&mut self, address: &str) -> Option<&str> {
        if !self.known.contains_key(address) {
            let url = format!("{}{address}", self.app.base_url());
            let answer = http().get(url).send().await.unwrap();
            let is_found = answer.status() == 200;
            let text = answer.text().await.unwrap();
            self.known.insert(address.to_owned(), is_found.then_some(text));
        }
        self.known[address].as_deref()
    }
}

fn main_of(page: &str) -> &str {
    page.split_once("<main").unwrap().1.split_once("</main>").unwrap().0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_for_users_is_served_and_no_page_for_contributors() {
    let app = TestApp::shared().await;
    let elements: BTreeSet<_> = ELEMENTS.split_whitespace().collect();
    let element = Regex::new("</?([a-z0-9]+)").unwrap();
    let mut count = 0;
    for file in files() {
        let address = address(&file);
        let answer = http().get(format!("{}{address}", app.base_url())).send().await.unwrap();
        if !is_served(&file) {
            assert_eq!(answer.status(), 404, "{address}");
            continue;
        }
        count += 1;
        assert_eq!(answer.status(), 200, "{address}");
        let headers = answer.headers().clone();
        assert!(headers["content-type"].to_str().unwrap().starts_with("text/html"), "{address}");
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'self';"), "{address}: {policy}");
        let page = answer.text().await.unwrap();
        let markdown = fs::read_to_string(root().join(&file)).unwrap();
        let title = markdown.lines().next().unwrap().trim_start_matches("# ");
        let title = title.replace('`', "").replace('\'', "&#39;");
        assert!(page.contains(&format!("<title>{title}</title>")), "{address}: {title}");
        let main = main_of(&page);
        for found in element.captures_iter(main) {
            assert!(elements.contains(&found[1]), "{address}: {}", &found[0]);
        }
        let scripts = page.matches("<script").count();
        assert!(page.contains(THEME) && scripts == 1 && !page.contains(" style="), "{address}");
        // Every heading of the second level is in the list of the page's sections.
        let headings = main.matches("<h2 id=").count();
        assert_eq!(
            page.matches("<a href=\"#").count() - main.matches("<a href=\"#").count(),
            headings
        );
    }
    assert!(count > 15, "{count}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_link_of_the_documentation_has_a_target() {
    let app = TestApp::shared().await;
    let mut pages = Pages { app, known: BTreeMap::new() };
    let (mut faults, mut count) = (Vec::new(), 0);
    for file in files().iter().filter(|file| is_served(file)) {
        let own = address(file);
        let page = pages.get(&own).await.unwrap().to_owned();
        for link in page.split("href=\"").skip(1) {
            let link = link.split('"').next().unwrap();
            if ["https://", "http://", "data:,"].iter().any(|start| link.starts_with(start)) {
                continue;
            }
            count += 1;
            let (address, anchor) = link.split_once('#').unwrap_or((link, ""));
            let address = if address.is_empty() { own.as_str() } else { address };
            let target = if address.starts_with('/') { pages.get(address).await } else { None };
            let target_id = format!("id=\"{anchor}\"");
            if !target.is_some_and(|page| anchor.is_empty() || page.contains(&target_id)) {
                faults.push(format!("{own}: {link}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 300, "{count}");
}

/// A link in a file is a link on its page if the other file is served, and a name otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_between_files_are_links_between_pages() {
    let app = TestApp::shared().await;
    let mut pages = Pages { app, known: BTreeMap::new() };
    let link = Regex::new(r"\]\(([^)#:\s]+\.md)(#[^)\s]*)?\)").unwrap();
    let (mut served, mut others) = (0, 0);
    for file in files().iter().filter(|file| is_served(file)) {
        let markdown = fs::read_to_string(root().join(file)).unwrap();
        let page = main_of(pages.get(&address(file)).await.unwrap()).to_owned();
        for found in link.captures_iter(&markdown) {
            let to = root().join(file.parent().unwrap()).join(&found[1]);
            let to =
                to.canonicalize().unwrap_or_else(|_| panic!("{}: {}", file.display(), &found[0]));
            let below = to.strip_prefix(root().canonicalize().unwrap()).ok().map(Path::to_owned);
            if let Some(below) = below.filter(|below| is_served(below)) {
                let anchor = found.get(2).map_or("", |anchor| anchor.as_str());
                let href = format!("href=\"{}{anchor}\"", address(&below));
                assert!(page.contains(&href), "{}: {href}", file.display());
                served += 1;
            } else {
                let name = to.file_name().unwrap().to_str().unwrap();
                assert!(page.contains(name), "{}: {name}", file.display());
                assert!(!page.contains(&format!("href=\"{}\"", &found[1])), "{}", file.display());
                others += 1;
            }
        }
    }
    assert!(served > 50 && others > 3, "{served}, {others}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn placeholders_are_text() {
    let app = TestApp::shared().await;
    let mut pages = Pages { app, known: BTreeMap::new() };
    let page = pages.get("/docs/reference/command-line").await.unwrap();
    assert!(page.contains("<code>tenants show &lt;ID&gt;</code>"), "{page}");
    let index = pages.get("/docs/guides").await.unwrap();
    assert!(index.contains("<a href=\"/docs/guides/policies\">"), "{index}");
}
