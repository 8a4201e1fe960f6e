//! Receipts, for a person with only a session: the service's own page, read with their token.
//!
//! A tenant may restrict its receipts to its own credentials, and the receipts' addresses do not
//! accept cookies. Here the session stands for the person: the same page by the same rules, without
//! caching. A public receipt is shown at its own address, which can be shared.

use crate::kit::prelude::*;

/// The path parameters must not have the names that the receipts' own addresses use. A call has the
/// extensions of the page's request, and these include the request's parameters.
pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/receipts/{of}", get(show))
        .route("/console/receipts/{of}/{part}", get(file))
}

async fn show(view: View, Path(id): Path<String>) -> Response {
    read(&view, &format!("/receipts/{}", encoded(&id))).await
}

async fn file(view: View, Path((id, file)): Path<(String, String)>) -> Response {
    read(&view, &format!("/receipts/{}/{}", encoded(&id), encoded(&file))).await
}

async fn read(view: &View, path: &str) -> Response {
    if view.calls.document(path, false).await.status() == StatusCode::OK {
        return see(path);
    }
    let mut answer = view.calls.document(path, true).await;
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    // The caller is known. Another credential cannot be offered.
    headers.remove(header::WWW_AUTHENTICATE);
    answer
}
