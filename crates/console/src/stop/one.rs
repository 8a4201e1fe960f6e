//! One stop: what it suspends, why, who knows of it, and how it is released.

use askama::Template;
use authority_model::wire::Time;
use axum::{
    extract::{Path, RawQuery},
    response::Response,
};
use chrono::TimeDelta;
use http::StatusCode;
use tonic::Status;

use super::{
    blast::{Blast, asked},
    known::{self, Agent, Concern},
    stopped::Stopped,
    target::Target,
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

#[derive(Template)]
#[template(path = "stop_one.html")]
struct StoppedPage {
    frame: Frame,
    /// What the person just did.
    done: Option<&'static str>,
    what: String,
    stopped: Stopped,
    at: Option<Moment>,
    released_at: Option<Moment>,
    /// Null where the role may not read decisions.
    known: Option<Vec<Agent>>,
    /// How many agents more there are.
    more: usize,
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
    let names = Names::of(view, stopped.subject.iter().cloned().collect()).await;
    let known = known(view, &stopped).await?;
    let release = if stopped.is_signal { rpc::LIFT_STOP_SIGNAL } else { rpc::RELEASE_QUARANTINE };
    let what = stopped.what(&names);
    let (known, more) = known.map_or((None, 0), |(agents, more)| (Some(agents), more));
    let shown = StoppedPage {
        frame: view.frame(format!("Stopped: {what}"), Section::Stop),
        done: match did {
            "stop" if stopped.is_active => Some("It is stopped. Every decision on it is a denial."),
            "release" if !stopped.is_active => {
                Some("It is released: what it suspended is in force.")
            }
            _ => None,
        },
        what,
        at: Moment::of_time(stopped.at, view.now),
        released_at: Moment::of_time(stopped.changed_at, view.now).filter(|_| !stopped.is_active),
        known,
        more,
        may_release: stopped.is_active && view.may(release),
        stopped,
    };
    Ok(page(StatusCode::OK, &shown))
}

/// Who knows of it: its principal, and who acts under it; of an action, who used it the day before.
async fn known(view: &View, stopped: &Stopped) -> Result<Option<(Vec<Agent>, usize)>, Status> {
    let Some(since) = stopped.at.and_then(Time::moment) else { return Ok(None) };
    let members = [
        ("subject", &stopped.subject),
        ("delegation", &stopped.delegation),
        ("action", &stopped.action),
    ];
    let members = members.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
    let target = Target::read(view, &Pairs::of(members)).await;
    let actions: Vec<String> = stopped.action.iter().cloned().collect();
    let mut agents: Vec<String> = stopped.subject.iter().cloned().collect();
    // What it named may be gone.
    if let Ok(target) = target {
        let blast = Blast::of(view, &target).await?;
        agents.extend(blast.agents.into_iter().map(|agent| agent.id));
    }
    if agents.is_empty() {
        let day = since - TimeDelta::days(1);
        agents.extend(asked(view, None, &stopped.tenant_id, &actions, day).await?);
    }
    agents.sort();
    agents.dedup();
    let until = stopped.changed_at.and_then(Time::moment).filter(|_| !stopped.is_active);
    known::of(view, &Concern { agents, actions: &actions, since, until }).await
}
