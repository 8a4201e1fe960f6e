//! Stop: what an agent may do ends now, and is released later. What ends with it is shown first, and a name is
//! typed.

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
mod spelling;
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
