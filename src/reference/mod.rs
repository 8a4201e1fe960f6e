//! The pages for people at `/docs`: the API's reference, from the service's own OpenAPI document,
//! and the documentation.
//!
//! The pages load no external resources. Only the list's filter needs a script.
//!
//! `/docs` lists every operation, `/docs/{operation}` shows one operation, and
//! `/docs/schemas/{name}` shows a schema shared by bodies. `/docs/guides` is the index of the
//! documentation (`documentation.rs`). The pages are rendered when the first of them is requested.
//! Many tools look for the document at `/openapi.json`, which redirects to `/openapi`.

mod document;
mod documentation;
mod kind;
mod markdown;
mod operation;
mod page;
mod prose;
mod request;
mod schema;

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use askama::Template;
use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Redirect, Response},
    routing::get,
};
use bytes::Bytes;
use serde_json::Value;
use tokio::task::spawn_blocking;

use document::Document;
use operation::Operation;
use page::{Index, Shape};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("filter.js");

const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
        ),
    ),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300")),
];

/// The pages of the API.
#[derive(Clone)]
pub struct Reference(Arc<Inner>);

struct Inner {
    /// The OpenAPI document.
    contract: String,
    /// The pages by path. All responses share a page's bytes: otherwise, each response would hold a
    /// copy until its caller has read it.
    pages: OnceLock<HashMap<String, Bytes>>,
}

impl Reference {
    /// The pages of this OpenAPI document.
    pub fn new(contract: String) -> Self {
        Self(Arc::new(Inner { contract, pages: OnceLock::new() }))
    }

    pub fn router(self) -> Router {
        Router::new()
            .route("/openapi.json", get(async || Redirect::permanent("/openapi")))
            .route("/docs", get(async |State(this): State<Self>| this.page("").await))
            .route("/docs/style.css", get(async || asset(STYLE, "text/css; charset=utf-8")))
            .route("/docs/filter.js", get(async || asset(SCRIPT, "text/javascript; charset=utf-8")))
            .route(
                "/docs/{*path}",
                get(async |State(this): State<Self>, Path(path): Path<String>| {
                    this.page(&path).await
                }),
            )
            .with_state(self)
    }

    async fn page(&self, path: &str) -> Response {
        let inner = Arc::clone(&self.0);
        if inner.pages.get().is_none() {
            // Rendering all pages takes longer than other requests may wait.
            let _ =
                spawn_blocking(move || inner.pages.get_or_init(|| inner.rendered()).len()).await;
        }
        match self.0.pages.get().and_then(|pages| pages.get(path)) {
            Some(page) => (HEADERS, Html(page.clone())).into_response(),
            None => {
                (StatusCode::NOT_FOUND, HEADERS, "no such page; /docs lists all").into_response()
            }
        }
    }
}

impl Inner {
    fn rendered(&self) -> HashMap<String, Bytes> {
        pages(&self.contract).into_iter().map(|(path, page)| (path, page.into())).collect()
    }
}

fn asset(text: &'static str, kind: &'static str) -> Response {
    (HEADERS, [(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

/// Renders every page, by its path below `/docs/`. A page that cannot be rendered is omitted.
fn pages(contract: &str) -> HashMap<String, String> {
    let contract: Value = serde_json::from_str(contract).unwrap_or_default();
    let document = Document(&contract);
    let operations = document.operations();
    let mut made = documentation::pages();
    made.push((String::new(), Index::of(document, &operations).render()));
    for (name, schema) in document.schemas() {
        made.push((format!("schemas/{name}"), Shape::of(document, name, schema).render()));
    }
    for found in operations {
        made.push((found.id.to_owned(), Operation::of(document, &found).render()));
    }
    let mut pages = HashMap::new();
    for (path, page) in made {
        match page {
            Ok(page) => drop(pages.insert(path, page)),
            Err(error) => {
                tracing::error!(%error, page = path, "failed to render a page of the documentation");
            }
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::directory::OPENAPI;

    #[test]
    fn every_operation_and_every_link_has_a_page() {
        let pages = pages(OPENAPI);
        let contract: Value = serde_json::from_str(OPENAPI).unwrap();
        for operation in Document(&contract).operations() {
            let page = &pages[operation.id];
            assert!(page.contains(operation.path), "{}", operation.id);
        }
        for (path, page) in &pages {
            assert!(page.len() < 300_000, "{path}: {} bytes", page.len());
            for link in page.split("href=\"/docs/").skip(1) {
                let link = link.split('"').next().unwrap();
                let (page, anchor) = link.split_once('#').unwrap_or((link, ""));
                assert!(link == "style.css" || pages.contains_key(page), "{path} links to {link}");
                let target = format!("id=\"{anchor}\"");
                assert!(anchor.is_empty() || pages[page].contains(&target), "{path}: {link}");
            }
            // The content security policy permits no other script and no style attribute. Every page
            // has the script for the choice of colours.
            assert!(page.contains("<script src=\"/theme/choice.js\"></script>"), "{path}");
            let scripts = page.matches("<script").count() - 1;
            let filters = page.matches("<script src=\"/docs/filter.js\" defer></script>").count();
            assert_eq!((scripts, filters), if path.is_empty() { (1, 1) } else { (0, 0) }, "{path}");
            assert!(!page.contains("style=\""), "{path}");
        }
    }

    /// Memory doesn't grow with the page's size or with the number of requests.
    #[tokio::test]
    async fn answers_share_the_bytes_of_their_page() {
        let reference = Reference::new(OPENAPI.to_owned());
        let bytes = async |path: &str| {
            let frame = reference.page(path).await.into_body().frame().await.unwrap().unwrap();
            frame.into_data().unwrap()
        };
        let contract: Value = serde_json::from_str(OPENAPI).unwrap();
        for path in ["", Document(&contract).operations()[0].id] {
            // Both are kept: otherwise, the second could be a copy at the freed address of the
            // first.
            let (one, other) = (bytes(path).await, bytes(path).await);
            assert_eq!(one.as_ptr(), other.as_ptr(), "{path}");
        }
    }

    /// Checks that every link to a service, an operation or a part of an operation has a target.
    #[test]
    fn every_anchor_is_on_its_page_once() {
        let pages = pages(OPENAPI);
        for (path, page) in &pages {
            let ids: Vec<_> = page.split(" id=\"").skip(1).map(quoted).collect();
            let mut once = ids.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), ids.len(), "{path}: {ids:?}");
            for link in page.split("href=\"#").skip(1).map(quoted) {
                assert!(ids.contains(&link), "{path}: #{link}");
            }
            for link in page.split("href=\"/docs#").skip(1).map(quoted) {
                assert!(pages[""].contains(&format!("id=\"{link}\"")), "{path}: {link}");
            }
        }
    }

    fn quoted(rest: &str) -> &str {
        rest.split('"').next().unwrap()
    }
}
