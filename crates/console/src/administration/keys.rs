//! The installation's signing keys: their use, replacements, and the steps of a replacement.

mod step;

use authority_model::{
    proto::keys::{
        CancelKeyRotationRequest, CompleteKeyRotationRequest, KeyRotation, ListKeyRotationsRequest,
        ListKeysRequest, RevokeKeyRequest, ScheduleKeyRotationRequest, SigningKey,
    },
    wire::Time,
};
use chrono::TimeDelta;
use step::{KeyOperation, Step};

use crate::kit::{prelude::*, typed::is_named};

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/keys", get(show))
        .route("/console/keys/act", get(confirm).post(act))
}

/// How long a successor is published before it signs automatically, in seconds.
const PUBLISHED: i64 = 3600;

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    frame: Frame,
    keys: Vec<SigningKey>,
    rotations: Vec<KeyRotation>,
    /// The result of the last act.
    done: Option<&'static str>,
}

async fn show(view: View, query: Pairs) -> Response {
    let done = KeyOperation::parse(done_word(&view, "/console/keys", &query)).ok();
    view.answer(shown(&view, done.map(|operation| operation.done)).await)
}

async fn shown(view: &View, done: Option<&'static str>) -> Result<Response, Status> {
    let listed = view.calls.call(&ListKeysRequest {}).await?;
    let rotations = view.calls.call(&ListKeyRotationsRequest::default()).await?;
    let shown = KeysPage {
        frame: view.frame(t::kit::SIGNING_KEYS, Section::Records),
        keys: listed.keys,
        rotations: rotations.rotations,
        done,
    };
    Ok(page(StatusCode::OK, &shown))
}

impl KeysPage {
    /// Whether the key replaces another one.
    fn is_successor(&self, key: &SigningKey) -> bool {
        self.rotations.iter().any(|rotation| rotation.successor_kid.as_ref() == Some(&key.kid))
    }

    /// The meaning of the key's status.
    fn label(&self, key: &SigningKey) -> &'static str {
        label(&key.status, self.is_successor(key))
    }

    /// When a replacement completes automatically.
    fn completes(&self, rotation: &KeyRotation) -> Option<Moment> {
        let begun = rotation.begun_at.and_then(Time::moment)?;
        self.frame.at(Some(Time::from(begun + TimeDelta::seconds(PUBLISHED))))
    }
}

/// The current function of a key. During a replacement the old key signs, and its successor is
/// published.
fn label(status: &str, is_successor: bool) -> &'static str {
    match (status, is_successor) {
        ("active", true) => t::administration::SIGNS_LATER,
        ("active", false) => t::administration::SIGNS_NOW,
        ("rotating", _) => t::administration::SIGNS_UNTIL,
        ("retired", _) => t::administration::SIGNS_NO_LONGER,
        ("revoked", _) => t::administration::IS_REVOKED,
        _ => t::overview::UNKNOWN,
    }
}

#[derive(Template)]
#[template(path = "keys_confirm.html")]
struct ConfirmPage {
    frame: Frame,
    operation: &'static KeyOperation,
    question: String,
    /// The id of a key or of its replacement.
    of: String,
    /// The text to type as confirmation.
    name: Option<String>,
    takes_reason: bool,
    /// The idempotency key: a form that is sent twice takes effect only once.
    key: String,
}

async fn confirm(view: View, query: Pairs) -> Response {
    view.answer(form(&view, &query, None))
}

fn form(view: &View, asked: &Pairs, problem: Option<String>) -> Result<Response, Status> {
    let operation = KeyOperation::parse(asked.text("step"))?;
    if !view.may(operation.needs) {
        return Err(refused(view, operation.needs));
    }
    let of = asked.text("of").to_owned();
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let frame = view.frame(operation.label, Section::Records);
    let shown = ConfirmPage {
        frame: frame.failed_if(operation.undone, problem, Some("name")),
        question: operation.question(&of),
        name: operation.typed(&of).map(str::to_owned),
        of,
        takes_reason: operation.step == Step::Rotate,
        operation,
        key: asked.one("key").map(str::to_owned).map_or_else(idempotency_key, Ok)?,
    };
    Ok(page(status, &shown))
}

async fn act(Posted { view, form }: Posted) -> Response {
    let operation = KeyOperation::parse(form.text("step"));
    let undone = operation.map_or(t::NOT_DONE, |operation| operation.undone);
    view.answer_act(undone, acted(&view, &form).await)
}

async fn acted(view: &View, asked: &Pairs) -> Result<Response, Status> {
    let (of, key) = (asked.text("of").to_owned(), asked.one("key"));
    let operation = KeyOperation::parse(asked.text("step"))?;
    if let Some(name) = operation.typed(&of).filter(|name| !is_named(name, asked.text("name"))) {
        return form(view, asked, Some(t::type_exactly(name)));
    }
    let calls = &view.calls;
    let sent = match operation.step {
        Step::Rotate => {
            let reason = asked.one("reason").map(str::to_owned);
            let request = ScheduleKeyRotationRequest { kid: of, due_at: None, reason };
            calls.call_once(&request, key).await.map(drop)
        }
        Step::Revoke => calls.call_once(&RevokeKeyRequest { kid: of }, key).await.map(drop),
        Step::Complete => {
            calls.call_once(&CompleteKeyRotationRequest { id: of }, key).await.map(drop)
        }
        Step::Cancel => calls.call_once(&CancelKeyRotationRequest { id: of }, key).await.map(drop),
    };
    sent?;
    Ok(see_done(view, "/console/keys", operation.word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_being_replaced_is_the_one_that_signs() {
        assert_eq!(label("active", false), "signs now");
        assert!(label("rotating", false).starts_with("signs now, until"));
        assert!(label("active", true).starts_with("published, signs once"));
        assert!(label("retired", false).starts_with("signs no longer"));
    }
}
