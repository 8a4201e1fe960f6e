//! What stands stopped, and what can be.

use askama::Template;
use authority_model::proto::{
    delegation::{ListDelegationsRequest, ListDelegationsResponse},
    registry::{
        ListPrincipalsRequest, ListPrincipalsResponse, ListToolsRequest, ListToolsResponse,
        Principal,
    },
};
use axum::{extract::RawQuery, response::Response};
use http::StatusCode;
use tonic::Status;

use super::stopped::in_force;
use crate::{
    choice::Choice,
    frame::{Frame, Section},
    names::Names,
    page::page,
    query::Pairs,
    rpc,
    show::{Moment, short},
    view::View,
};

/// Agents that are listed; others are found by their name.
const SHOWN: usize = 40;
const PAGE: i32 = 500;

struct Standing {
    id: String,
    what: String,
    reason: String,
    by: String,
    at: Option<Moment>,
}

struct Actor {
    id: String,
    name: String,
    about: String,
    class: &'static str,
}

/// What can be suspended in part: the choices of a form.
struct Parts {
    subjects: Vec<Choice>,
    delegations: Vec<Choice>,
    tools: Vec<Choice>,
}

#[derive(Template)]
#[template(path = "stop.html")]
struct StopPage {
    frame: Frame,
    released: bool,
    standing: Vec<Standing>,
    may_stop: bool,
    sought: String,
    actors: Vec<Actor>,
    /// Whether there are more than are shown.
    more: bool,
    parts: Parts,
}

pub(super) async fn list(view: View, RawQuery(query): RawQuery) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    view.answer(listed(&view, &query).await)
}

async fn listed(view: &View, query: &Pairs) -> Result<Response, Status> {
    let may_stop = view.may(rpc::CREATE_STOP_SIGNAL);
    let principals = if may_stop { principals(view).await? } else { Vec::new() };
    let sought = query.text("q").trim().to_owned();
    let subjects = principals.iter().map(|principal| Choice {
        value: principal.id.clone(),
        label: format!("{} ({})", called(principal), principal.display_name),
        chosen: false,
    });
    let parts = Parts {
        subjects: subjects.collect(),
        delegations: if may_stop { delegations(view).await? } else { Vec::new() },
        tools: if may_stop { tools(view).await? } else { Vec::new() },
    };
    let mut actors: Vec<Actor> = principals.iter().filter_map(|p| actor(p, &sought)).collect();
    let more = actors.len() > SHOWN;
    actors.truncate(SHOWN);
    let stop = StopPage {
        frame: view.frame("Stop", Section::Stop),
        released: query.text("did") == "release",
        standing: standing(view).await?,
        may_stop,
        sought,
        actors,
        more,
        parts,
    };
    Ok(page(StatusCode::OK, &stop))
}

fn called(principal: &Principal) -> &str {
    if principal.id.starts_with("svc:agent:") {
        short(&principal.id)
    } else {
        &principal.display_name
    }
}

/// A principal as a row, if it is one that is sought.
fn actor(principal: &Principal, sought: &str) -> Option<Actor> {
    let sought = sought.to_lowercase();
    let texts = [principal.id.as_str(), &principal.display_name];
    let found = texts.iter().any(|text| text.to_lowercase().contains(&sought));
    let is_agent = principal.principal_class == "agent";
    found.then(|| Actor {
        id: principal.id.clone(),
        name: called(principal).to_owned(),
        about: if is_agent { principal.display_name.clone() } else { String::new() },
        class: match principal.principal_class.as_str() {
            "agent" => "agent",
            "human" => "person",
            "external_app" => "external app",
            _ => "system",
        },
    })
}

/// Those that can act, agents first.
async fn principals(view: &View) -> Result<Vec<Principal>, Status> {
    let request = ListPrincipalsRequest {
        tenant_id: view.shown_tenant().map(str::to_owned),
        state: Some("active".to_owned()),
        limit: Some(PAGE),
        ..ListPrincipalsRequest::default()
    };
    let listed: ListPrincipalsResponse = view.calls.call(rpc::LIST_PRINCIPALS, &request).await?;
    let mut principals = listed.principals;
    principals.sort_by_key(|principal| principal.principal_class != "agent");
    Ok(principals)
}

async fn delegations(view: &View) -> Result<Vec<Choice>, Status> {
    let request = ListDelegationsRequest {
        tenant_id: view.shown_tenant().map(str::to_owned),
        state: Some("active".to_owned()),
        limit: Some(PAGE),
        ..ListDelegationsRequest::default()
    };
    let listed: ListDelegationsResponse = view.calls.call(rpc::LIST_DELEGATIONS, &request).await?;
    let choices = listed.delegations.into_iter().map(|delegation| Choice {
        label: format!("{} to {}", delegation.actions.join(", "), short(&delegation.delegate_id)),
        value: delegation.id,
        chosen: false,
    });
    Ok(choices.collect())
}

async fn tools(view: &View) -> Result<Vec<Choice>, Status> {
    let request = ListToolsRequest {
        tenant_id: view.shown_tenant().map(str::to_owned),
        state: Some("active".to_owned()),
        limit: Some(PAGE),
        ..ListToolsRequest::default()
    };
    let listed: ListToolsResponse = view.calls.call(rpc::LIST_TOOLS, &request).await?;
    let tools = listed.tools.into_iter().map(|tool| Choice {
        label: format!("{}: {}", tool.name, tool.actions.join(", ")),
        value: tool.id,
        chosen: false,
    });
    Ok(tools.collect())
}

async fn standing(view: &View) -> Result<Vec<Standing>, Status> {
    let stopped = in_force(view, view.shown_tenant().map(str::to_owned)).await?;
    let names = Names::of(view, stopped.iter().filter_map(|s| s.subject.clone()).collect()).await;
    let rows = stopped.into_iter().map(|stopped| Standing {
        what: stopped.what(&names),
        at: Moment::of_time(stopped.at, view.now),
        id: stopped.id,
        reason: stopped.reason,
        by: stopped.by,
    });
    Ok(rows.collect())
}
