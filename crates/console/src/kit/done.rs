//! The message after an act. The address contains the act's word with a proof that only this
//! session can create, valid for two minutes. Otherwise a link or a bookmark could claim an act
//! that never happened.

use authority_crypto::equal;
use axum::response::Response;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::kit::{page::see, query::Pairs, view::View};

/// Redirects to a page that reports the act with this word.
pub(crate) fn see_done(view: &View, path: &str, word: &str) -> Response {
    see(&format!("{path}?did={word}&proof={}", proof(view, path, word, minute(view))))
}

/// The word of the act that has just led to this path; empty without an act or a valid proof.
pub(crate) fn done_word<'q>(view: &View, path: &str, query: &'q Pairs) -> &'q str {
    let (word, given) = (query.text("did"), query.text("proof"));
    let now = minute(view);
    let proofs = [now, now - 1].map(|at| proof(view, path, word, at));
    let is_proven = proofs.iter().any(|proof| equal(given.as_bytes(), proof.as_bytes()));
    if is_proven { word } else { "" }
}

fn minute(view: &View) -> i64 {
    view.now.timestamp() / 60
}

fn proof(view: &View, path: &str, word: &str, minute: i64) -> String {
    let text = format!("{minute} {path} {word} {}", view.csrf());
    URL_SAFE_NO_PAD.encode(view.console.0.sessions.keys.mac("console-done", text.as_bytes()))
}
