//! What an agent may do, and by whose authority: its grants, the chain of delegations of each, what each link narrows,
//! and what stops it.

mod one;
mod stops;

use axum::{Router, routing::get};

use crate::{Console, page::see};

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route(
            "/console/agents",
            get(async || see("/console/records/principals?m.principal_class=agent")),
        )
        .route("/console/agents/{id}", get(one::agent))
        .route("/console/delegations/{id}", get(one::delegation))
}
