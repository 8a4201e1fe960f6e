//! The installation's signing keys: which sign, which are replaced, and the steps of a replacement.

use askama::Template;
use authority_model::proto::keys::{
    CancelKeyRotationRequest, CompleteKeyRotationRequest, KeyRotation, ListKeyRotationsRequest,
    ListKeyRotationsResponse, ListKeysRequest, ListKeysResponse, RevokeKeyRequest,
    RevokeKeyResponse, ScheduleKeyRotationRequest, SigningKey,
};
use axum::{Router, extract::RawQuery, response::Response, routing::get};
use http::StatusCode;
use tonic::Status;

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

/// A step that a person can take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Rotate,
    Revoke,
    Complete,
    Cancel,
}

impl Step {
    const ALL: [(Self, &'static str, &'static str, &'static str); 4] = [
        (
            Self::Rotate,
            "rotate",
            "Replace it",
            "A successor is published now, and signs once the replacement is completed.",
        ),
        (
            Self::Revoke,
            "revoke",
            "Revoke it",
            "Whatever it signed is no longer accepted. This cannot be undone.",
        ),
        (
            Self::Complete,
            "complete",
            "Complete the replacement",
            "From then on the successor signs, and the key signs no longer.",
        ),
        (Self::Cancel, "cancel", "Cancel the replacement", "The key goes on signing."),
    ];

    fn parse(word: &str) -> Result<Self, Status> {
        let found = Self::ALL.iter().find(|(_, known, ..)| *known == word);
        found.map(|(step, ..)| *step).ok_or_else(|| Status::not_found("there is no such page"))
    }

    fn about(self) -> (&'static str, &'static str, &'static str) {
        let found = Self::ALL.iter().find(|(step, ..)| *step == self);
        found.map_or(("", "", ""), |(_, word, label, about)| (word, label, about))
    }

    fn needs(self) -> &'static str {
        match self {
            Self::Rotate => rpc::SCHEDULE_KEY_ROTATION,
            Self::Revoke => rpc::REVOKE_KEY,
            Self::Complete => rpc::COMPLETE_KEY_ROTATION,
            Self::Cancel => rpc::CANCEL_KEY_ROTATION,
        }
    }
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
    /// Whether something was just done.
    done: bool,
}

async fn show(view: View, RawQuery(query): RawQuery) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    view.answer(shown(&view, query.one("did").is_some()).await)
}

async fn shown(view: &View, done: bool) -> Result<Response, Status> {
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
    takes_reason: bool,
    ends: bool,
    key: String,
}

async fn confirm(view: View, RawQuery(query): RawQuery) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    view.answer(confirmation(&view, &query))
}

fn confirmation(view: &View, query: &Pairs) -> Result<Response, Status> {
    let step = Step::parse(query.text("step"))?;
    if !view.may(step.needs()) {
        return Err(Status::permission_denied("your role may not do this"));
    }
    let (word, label, about) = step.about();
    let shown = ConfirmPage {
        frame: view.frame(label, Section::Records),
        step: word,
        label,
        about,
        of: query.text("of").to_owned(),
        takes_reason: step == Step::Rotate,
        ends: step == Step::Revoke,
        key: idempotency_key()?,
    };
    Ok(page(StatusCode::OK, &shown))
}

async fn act(Posted { view, form }: Posted) -> Response {
    view.answer(acted(&view, &form).await)
}

async fn acted(view: &View, form: &Pairs) -> Result<Response, Status> {
    let (of, key) = (form.text("of").to_owned(), form.one("key"));
    match Step::parse(form.text("step"))? {
        Step::Rotate => {
            let reason = form.one("reason").map(str::to_owned);
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
    Ok(see("/console/keys?did=yes"))
}
