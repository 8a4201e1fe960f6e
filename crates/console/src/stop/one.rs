//! One stop: the suspended authority, the reason, the agents that know about it, and the release.

use askama::Template;
use axum::{
    extract::{Path, RawQuery},
    response::Response,
};
use http::StatusCode;
use tonic::Status;

use super::{
    known::{self, Agent, MOST, Refused},
    permits::{self, Permitted},
    scope::StopScope,
    stopped::Stopped,
};
use crate::{
    frame::{Frame, Section},
    names::Names,
    page::page,
    query::Pairs,
    rpc,
    show::Moment,
    view::View,
};

/// The state of the agents that a stop concerns.
struct Followed {
    agents: Vec<Agent>,
    permitted: Vec<Permitted>,
    /// The number of further agents.
    more: usize,
    /// Whether other agents may have requested the stopped actions in decisions that were not read.
    cut: bool,
}

#[derive(Template)]
#[template(path = "stop_one.html")]
struct StoppedPage {
    frame: Frame,
    /// The result of the person's last action.
    done: Option<&'static str>,
    what: String,
    stopped: Stopped,
    at: Option<Moment>,
    released_at: Option<Moment>,
    followed: Option<Followed>,
    /// The reason if `followed` is unknown.
    unknown: &'static str,
    may_release: bool,
}

pub(super) async fn show(
    view: View,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    view.answer(shown(&view, &id, query.text("did")).await)
}

async fn shown(view: &View, id: &str, did: &str) -> Result<Response, Status> {
    let stopped = Stopped::read(view, id).await?;
    let names = Names::to_call(view, stopped.subject.iter().cloned().collect()).await;
    let (followed, unknown) = if view.may(rpc::LIST_DECISIONS) {
        let followed = followed(view, &stopped).await;
        // If reading fails, the stop and its release are still shown.
        let followed = followed
            .inspect_err(|error| tracing::warn!(%error, "failed to read the agents of a stop"));
        (followed.ok(), "This could not be read now. Reload the page.")
    } else {
        (None, "Your role may not read decisions. They show which agents were refused.")
    };
    let release = if stopped.is_signal { rpc::LIFT_STOP_SIGNAL } else { rpc::RELEASE_QUARANTINE };
    let what = stopped.what(&names);
    let shown = StoppedPage {
        frame: view.frame(format!("Stopped: {what}"), Section::Stop),
        done: match did {
            "stop" if stopped.is_active => Some("It is stopped. Every decision on it is a denial."),
            "release" if !stopped.is_active => Some(
                "It is released. The suspended authority applies again, unless another stop suspends it.",
            ),
            _ => None,
        },
        what,
        at: Moment::of_time(stopped.at, view.now),
        released_at: Moment::of_time(stopped.changed_at, view.now).filter(|_| !stopped.is_active),
        followed,
        unknown,
        may_release: stopped.is_active && view.may(release),
        stopped,
    };
    Ok(page(StatusCode::OK, &shown))
}

/// Reads the state of the agents. A background request of the script reads only the refusals.
async fn followed(view: &View, stopped: &Stopped) -> Result<Followed, Status> {
    let scope = StopScope::of(view, stopped).await?;
    let agents = known::of(view, &scope).await?;
    let permitted = if view.is_live() { Vec::new() } else { permits::of(view, &scope).await? };
    let more = scope.agents.len().saturating_sub(MOST) + scope.others;
    Ok(Followed { agents, permitted, more, cut: scope.cut })
}
