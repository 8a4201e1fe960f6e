//! Decisions: searching by subject, the reasons, the evidence, and the replay.

mod deciding_policies;
mod decision;
mod evidence;
mod exceeded;
mod export;
mod filter;
mod list;
mod log;
mod people;
mod question;
mod receipts;
mod replay;
mod step;

pub(crate) use step::{StageView, step};

use axum::routing::post;

use crate::kit::prelude::*;

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/decisions", get(list::list))
        .route("/console/decisions/export", get(export::export))
        .route("/console/decisions/{id}", get(decision::show))
        .route("/console/decisions/{id}/bundle.json", get(evidence::bundle))
        .route("/console/decisions/{id}/seal", post(evidence::seal))
        .route("/console/decisions/{id}/replay", post(replay::replay))
        .merge(log::router())
        .merge(receipts::router())
}
