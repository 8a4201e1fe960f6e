//! Stops: an agent's permissions are suspended immediately, and released later. One page shows the
//! impact and has the button.

mod confirm;
mod details;
mod find;
mod impact;
mod in_force;
mod list;
mod order;
mod partly;
mod reason;
mod release;
mod stopped;
mod target;

pub(crate) use in_force::{Active, InForce, in_force, in_force_on, named};

use crate::kit::prelude::*;

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/stop", get(list::list))
        .route("/console/stop/confirm", get(confirm::confirm).post(confirm::act))
        .route("/console/stop/{id}", get(details::show))
        .route("/console/stop/{id}/release", get(release::confirm).post(release::act))
}
