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
mod held;
mod history;
mod last;
mod layout;
mod library;
mod list;
mod milder;
mod outcome;
mod pickers;
mod record;
mod request;
mod sentence;
mod shown;
mod step;

pub(crate) use call::{count, create, read};
pub(crate) use doubts::without;
pub(crate) use field::{Field, Place, SubmittedForm};
pub(crate) use held::held;
pub(crate) use layout::{AGENT, Layout};
pub(crate) use pickers::{Picker, proposals, propose, tenant_of};
pub(crate) use sentence::Sentence;
pub(crate) use shown::{Datum, Link, Shown, address, title};

use crate::kit::prelude::*;

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/records", get(list::kinds))
        .route("/console/records/{kind}", get(list::list))
        .route("/console/records/{kind}/{id}", get(record::show))
        .route("/console/records/{kind}/new/{word}", get(act::make).post(act::made))
        .route("/console/records/{kind}/{id}/{word}", get(act::confirm).post(act::act))
}
