//! The agents, and what each may do, and by whose authority: its grants, the chain of delegations of each, what each link narrows,
//! and what stops it.

mod list;
mod one;
mod stops;

use axum::{Router, routing::get};

use crate::Console;

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/agents", get(list::list))
        .route("/console/agents/{id}", get(one::agent))
        .route("/console/delegations/{id}", get(one::delegation))
}
