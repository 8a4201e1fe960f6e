//! The first page: pending requests, stops, failures, expiries, and the decisions of the last day
//! and month.
//!
//! Each number is a link to the list that it counts. A person sees the numbers of the lists that
//! their role may read.

mod chart;
mod numbers;
mod usage;

pub(crate) use usage::{Shown, Usage, last_day, of_agent};

use axum::response::Redirect;
use numbers::{Number, numbers};

use crate::kit::{latency::Latency, prelude::*};

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console", get(overview))
        .route("/console/", get(async || Redirect::to("/console")))
}

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    numbers: Vec<Number>,
    /// `None` if the role may not read it.
    usage: Option<Usage>,
    /// The time of this node's decisions of all tenants, for the owner of the installation.
    latency: Option<Latency>,
}

async fn overview(view: View) -> Response {
    // One after the other: a page makes only a few calls at once.
    let numbers = numbers(&view).await;
    let usage = usage::of_tenant(&view).await;
    let latency = view.caller.is_owner().then(|| (view.console.0.latency)());
    let frame = view.frame(t::OVERVIEW, Section::Overview);
    page(StatusCode::OK, &OverviewPage { frame, numbers, usage, latency })
}

impl OverviewPage {
    /// Whether the role may read no number of this page.
    fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.usage.is_none()
    }
}
