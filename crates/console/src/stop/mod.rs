//! Stops: an agent's permissions are suspended immediately, and released later. The page shows the
//! consequences first and requires a typed name.

mod blast;
mod confirm;
mod find;
mod in_force;
mod known;
mod list;
mod one;
mod order;
mod partly;
mod permits;
mod release;
mod scope;
mod stopped;
mod target;
mod underway;

pub(crate) use in_force::{InForce, in_force, in_force_on};

use axum::{Router, routing::get};

use crate::Console;

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/stop", get(list::list))
        .route("/console/stop/confirm", get(confirm::confirm).post(confirm::act))
        .route("/console/stop/{id}", get(one::show))
        .route("/console/stop/{id}/release", get(release::confirm).post(release::act))
}
