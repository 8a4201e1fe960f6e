//! The imports of most pages.

pub(crate) use askama::{Template, filters::Safe};
pub(crate) use axum::{
    Router,
    extract::Path,
    response::{IntoResponse, Response},
    routing::get,
};
pub(crate) use chrono::{DateTime, Utc};
pub(crate) use http::{HeaderMap, HeaderValue, StatusCode, header};
pub(crate) use serde_json::{Map, Value};
pub(crate) use tonic::{Code, Status};

pub(crate) use super::{
    calls::some_at_once,
    done::{done_word, see_done},
    form::{Posted, idempotency_key},
    frame::{Frame, Section},
    names::{Named, Names, called},
    notice::Notice,
    page::{page, see},
    problem::{Problem, is_absent, is_of_search, no_page, refused},
    query::{Pairs, encoded},
    rpc,
    show::{Amount, Argument, Moment, arguments, short},
    view::View,
};
pub(crate) use crate::{Console, texts as t};
