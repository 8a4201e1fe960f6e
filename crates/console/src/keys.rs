//! The installation's signing keys: which sign, which are replaced, and the steps of a replacement.

mod step;

use askama::Template;
use authority_model::proto::keys::{
    CancelKeyRotationRequest, CompleteKeyRotationRequest, KeyRotation, ListKeyRotationsRequest,
    ListKeyRotationsResponse, ListKeysRequest, ListKeysResponse, RevokeKeyRequest,
    RevokeKeyResponse, ScheduleKeyRotationRequest, SigningKey,
};
use axum::{Router, extract::RawQuery, response::Response, routing::get};
use http::StatusCode;
use tonic::Status;

use step::Step;

use crate::{
    Console,
    form::{Posted, idempotency_key},
    frame::{Frame, Section},
    page::{page, see},
    query::Pairs,
    rpc,
    show::Moment,
    view::View,
};

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
    custody: String,
    since: Option<Moment>,
    due: Option<Moment>,
    /// What can be done with it.
    signs: bool,
    revocable: bool,
}

struct Rotation {
    id: String,
    kid: String,
    successor: Option<String>,
    state: String,
    due: Option<Moment>,
    reason: Option<String>,
}

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    frame: Frame,
    keys: Vec<Key>,
    rotations: Vec<Rotation>,
    /// What was just done.
    done: Option<&'static str>,
}

async fn show(view: View, RawQuery(query): RawQuery) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    let done = query.one("did").and_then(|word| Step::parse(word).ok()).map(Step::done);
    view.answer(shown(&view, done).await)
}

async fn shown(view: &View, done: Option<&'static str>) -> Result<Response, Status> {
    let listed: ListKeysResponse = view.calls.call(rpc::LIST_KEYS, &ListKeysRequest {}).await?;
    let request = ListKeyRotationsRequest::default();
    let rotations: ListKeyRotationsResponse =
        view.calls.call(rpc::LIST_KEY_ROTATIONS, &request).await?;
    let rotations = rotations.rotations.into_iter().map(|rotation| Rotation {
        due: Moment::of_time(rotation.due_at, view.now),
        id: rotation.id,
        kid: rotation.kid,
        successor: rotation.successor_kid,
        state: rotation.state,
        reason: rotation.reason,
    });
    let shown = KeysPage {
        frame: view.frame("Signing keys", Section::Records),
        keys: listed.keys.into_iter().map(|one| shown_key(view, one)).collect(),
        rotations: rotations.collect(),
        done,
    };
    Ok(page(StatusCode::OK, &shown))
}

fn shown_key(view: &View, key: SigningKey) -> Key {
    Key {
        signs: key.status == "active",
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
    about: &'static str,
    /// A key's id, or that of its replacement.
    of: String,
    /// What is typed to confirm.
    name: Option<String>,
    /// Why the form was not taken.
    problem: Option<String>,
    takes_reason: bool,
    /// Sent twice, the form acts once.
    key: String,
}

async fn confirm(view: View, RawQuery(query): RawQuery) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    view.answer(form(&view, &query, None))
}

fn form(view: &View, asked: &Pairs, problem: Option<String>) -> Result<Response, Status> {
    let step = Step::parse(asked.text("step"))?;
    if !view.may(step.needs()) {
        return Err(Status::permission_denied("your role may not do this"));
    }
    let of = asked.text("of").to_owned();
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let shown = ConfirmPage {
        frame: view.frame(step.label(), Section::Records),
        step: step.word(),
        label: step.label(),
        about: step.about(),
        name: step.typed(&of).map(str::to_owned),
        of,
        problem,
        takes_reason: step == Step::Rotate,
        key: asked.one("key").map(str::to_owned).map_or_else(idempotency_key, Ok)?,
    };
    Ok(page(status, &shown))
}

async fn act(Posted { view, form }: Posted) -> Response {
    view.answer(acted(&view, &form).await)
}

async fn acted(view: &View, asked: &Pairs) -> Result<Response, Status> {
    let (of, key) = (asked.text("of").to_owned(), asked.one("key"));
    let step = Step::parse(asked.text("step"))?;
    if let Some(name) = step.typed(&of).filter(|name| asked.text("name").trim() != *name) {
        let text = format!("Nothing was done. Type {name} exactly, to confirm.");
        return form(view, asked, Some(text));
    }
    match step {
        Step::Rotate => {
            let reason = asked.one("reason").map(str::to_owned);
            let request = ScheduleKeyRotationRequest { kid: of, due_at: None, reason };
            let _: KeyRotation =
                view.calls.call_once(rpc::SCHEDULE_KEY_ROTATION, &request, key).await?;
        }
        Step::Revoke => {
            let request = RevokeKeyRequest { kid: of };
            let _: RevokeKeyResponse = view.calls.call_once(rpc::REVOKE_KEY, &request, key).await?;
        }
        Step::Complete => {
            let request = CompleteKeyRotationRequest { id: of };
            let _: KeyRotation =
                view.calls.call_once(rpc::COMPLETE_KEY_ROTATION, &request, key).await?;
        }
        Step::Cancel => {
            let request = CancelKeyRotationRequest { id: of };
            let _: KeyRotation =
                view.calls.call_once(rpc::CANCEL_KEY_ROTATION, &request, key).await?;
        }
    }
    Ok(see(&format!("/console/keys?did={}", step.word())))
}
