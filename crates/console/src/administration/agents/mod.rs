//! The agents with their authority: the grants, the chain of delegations of each grant, the
//! narrower bounds of each link, and the stops.

mod agent;
mod first_request;
mod list;
mod new;
mod stops;

use crate::kit::prelude::*;

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/agents", get(list::list))
        .route("/console/agents/new", get(new::show).post(new::send))
        .route("/console/agents/{id}", get(agent::agent))
        .route("/console/delegations/{id}", get(agent::delegation))
}
