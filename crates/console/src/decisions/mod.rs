//! Decisions: searching by subject, the reasons, the evidence, and the replay.

mod deciding_policies;
mod evidence;
mod exceeded;
mod export;
mod filter;
mod list;
mod one;
mod people;
mod question;
mod replay;
mod step;

pub(crate) use step::{StageView, step};

use axum::{
    Router,
    routing::{get, post},
};

use crate::Console;

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/decisions", get(list::list))
        .route("/console/decisions/export", get(export::export))
        .route("/console/decisions/{id}", get(one::show))
        .route("/console/decisions/{id}/bundle.json", get(evidence::bundle))
        .route("/console/decisions/{id}/seal", post(evidence::seal))
        .route("/console/decisions/{id}/replay", post(replay::replay))
}
