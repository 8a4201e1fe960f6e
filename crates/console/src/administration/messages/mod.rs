//! The channels over which people get messages about requests: their list, and the form of one.

mod channel;
mod input;
mod list;

use input::LIST;

use crate::kit::prelude::*;

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route(LIST, get(list::show).post(list::add))
        .route("/console/messages/{id}", get(channel::show).post(channel::act))
}
