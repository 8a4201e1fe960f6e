//! Pages for each kind of record, made from the protos' descriptors: a list, each record with its history, and a form
//! for each operation. A new kind or operation in the protos gets its pages without a change here.

mod act;
mod call;
mod depends;
mod doubts;
mod ended;
mod ending;
mod field;
mod form;
mod history;
mod known;
mod last;
mod library;
mod list;
mod milder;
mod one;
mod outcome;
mod pickers;
mod request;
mod shown;
mod step;

pub(crate) use call::read;
pub(crate) use shown::{Datum, Link, Shown, address, title};

use axum::{Router, routing::get};

use crate::Console;

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/records", get(list::kinds))
        .route("/console/records/{kind}", get(list::list))
        .route("/console/records/{kind}/{id}", get(one::show))
        .route("/console/records/{kind}/new/{word}", get(act::make).post(act::made))
        .route("/console/records/{kind}/{id}/{word}", get(act::confirm).post(act::act))
}
