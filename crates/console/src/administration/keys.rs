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
use step::KeyOperation;

use crate::kit::{prelude::*, typed::is_named};

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/keys", get(show))
        .route("/console/keys/act", get(confirm).post(act))
}

struct Key {
    kid: String,
    purpose: String,
    alg: String,
    status: String,
    /// The meaning of the status.
    label: &'static str,
    custody: String,
    since: Option<Moment>,
    due: Option<Moment>,
    /// The available operations.
    signs: bool,
    revocable: bool,
}

struct Rotation {
    id: String,
    kid: String,
    successor: Option<String>,
    state: String,
    due: Option<Moment>,
    /// When it completes automatically.
    completes: Option<Moment>,
    reason: Option<String>,
}

/// How long a successor is published before it signs automatically, in seconds.
const PUBLISHED: i64 = 3600;

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    frame: Frame,
    keys: Vec<Key>,
    rotations: Vec<Rotation>,
    /// The result of the last act.
    done: Option<&'static str>,
}

async fn show(view: View, query: Pairs) -> Response {
    let done =
        KeyOperation::parse(done_word(&view, "/console/keys", &query)).ok().map(KeyOperation::done);
    view.answer(shown(&view, done).await)
}

async fn shown(view: &View, done: Option<&'static str>) -> Result<Response, Status> {
    let listed = view.calls.call(&ListKeysRequest {}).await?;
    let request = ListKeyRotationsRequest::default();
    let rotations = view.calls.call(&request).await?;
    let successors: Vec<String> =
        rotations.rotations.iter().filter_map(|one| one.successor_kid.clone()).collect();
    let rotations = rotations.rotations.into_iter().map(|rotation| Rotation {
        completes: completes(view, &rotation),
        due: Moment::of_time(rotation.due_at, view.now),
        id: rotation.id,
        kid: rotation.kid,
        successor: rotation.successor_kid,
        state: rotation.state,
        reason: rotation.reason,
    });
    let shown = KeysPage {
        frame: view.frame(t::kit::SIGNING_KEYS, Section::Records),
        keys: listed.keys.into_iter().map(|one| shown_key(view, one, &successors)).collect(),
        rotations: rotations.collect(),
        done,
    };
    Ok(page(StatusCode::OK, &shown))
}

fn completes(view: &View, rotation: &KeyRotation) -> Option<Moment> {
    let begun = rotation.begun_at.and_then(Time::moment)?;
    Some(Moment::of(begun + TimeDelta::seconds(PUBLISHED), view.now))
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

fn shown_key(view: &View, key: SigningKey, successors: &[String]) -> Key {
    let is_successor = successors.contains(&key.kid);
    Key {
        label: label(&key.status, is_successor),
        signs: key.status == "active" && !is_successor,
        revocable: key.status != "revoked",
        since: Moment::of_time(key.activated_at.or(key.created_at), view.now),
        due: Moment::of_time(key.rotation_due_at, view.now),
        kid: key.kid,
        purpose: key.purpose,
        alg: key.alg,
        status: key.status,
        custody: key.custody_provider,
    }
}

#[derive(Template)]
#[template(path = "keys_confirm.html")]
struct ConfirmPage {
    frame: Frame,
    step: &'static str,
    label: &'static str,
    question: String,
    about: &'static str,
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
    let step = KeyOperation::parse(asked.text("step"))?;
    if !view.may(step.needs()) {
        return Err(refused(view, step.needs()));
    }
    let of = asked.text("of").to_owned();
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let frame = view.frame(step.label(), Section::Records);
    let shown = ConfirmPage {
        frame: match problem {
            Some(text) => frame.failed(step.undone(), text, Some("name")),
            None => frame,
        },
        step: step.word(),
        label: step.label(),
        question: step.question(&of),
        about: step.about(),
        name: step.typed(&of).map(str::to_owned),
        of,
        takes_reason: step == KeyOperation::Rotate,
        key: asked.one("key").map(str::to_owned).map_or_else(idempotency_key, Ok)?,
    };
    Ok(page(status, &shown))
}

async fn act(Posted { view, form }: Posted) -> Response {
    let undone = KeyOperation::parse(form.text("step")).map_or(t::NOT_DONE, KeyOperation::undone);
    view.answer_act(undone, acted(&view, &form).await)
}

async fn acted(view: &View, asked: &Pairs) -> Result<Response, Status> {
    let (of, key) = (asked.text("of").to_owned(), asked.one("key"));
    let step = KeyOperation::parse(asked.text("step"))?;
    if let Some(name) = step.typed(&of).filter(|name| !is_named(name, asked.text("name"))) {
        return form(view, asked, Some(t::type_exactly(name)));
    }
    match step {
        KeyOperation::Rotate => {
            let reason = asked.one("reason").map(str::to_owned);
            let request = ScheduleKeyRotationRequest { kid: of, due_at: None, reason };
            view.calls.call_once(&request, key).await?;
        }
        KeyOperation::Revoke => {
            let request = RevokeKeyRequest { kid: of };
            view.calls.call_once(&request, key).await?;
        }
        KeyOperation::Complete => {
            let request = CompleteKeyRotationRequest { id: of };
            view.calls.call_once(&request, key).await?;
        }
        KeyOperation::Cancel => {
            let request = CancelKeyRotationRequest { id: of };
            view.calls.call_once(&request, key).await?;
        }
    }
    Ok(see_done(view, "/console/keys", step.word()))
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
