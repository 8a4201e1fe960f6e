//! Finds the agents and other principals that a person looks for.

use authority_ids::{IdParts, PrincipalId};
use authority_model::proto::registry::{GetPrincipalRequest, ListPrincipalsRequest, Principal};

use crate::kit::prelude::*;

/// The maximum number of listed principals. Others are found by their name.
const SHOWN: usize = 40;
/// The longest text that the API searches for, in characters.
const LONGEST: usize = 100;

/// A principal that can be stopped.
pub(super) struct Actor {
    pub(super) id: String,
    pub(super) name: String,
    /// An agent's display name, beside the name in its id.
    pub(super) about: String,
    /// The class and state: `agent`, or `agent, suspended`.
    pub(super) class: String,
}

/// The result of a search.
#[derive(Default)]
pub(super) struct FoundActors {
    pub(super) actors: Vec<Actor>,
    /// Whether there are more than these.
    pub(super) more: bool,
    /// The reason why the search did not run.
    pub(super) problem: Option<&'static str>,
}

/// Lists the active agents or, for a text, the active principals that contain it, agents first.
///
/// A whole id and an agent's name are looked up separately: they are found in any state, and even if
/// the search fails.
pub(super) async fn find(view: &View, sought: &str) -> Result<FoundActors, Status> {
    if sought.is_empty() {
        return Ok(list(view, Some("agent"), None).await?.into());
    }
    let mut found = match named(view, sought).await? {
        Some(one) if IdParts::begins(sought) => return Ok(vec![one].into()),
        named => Vec::from_iter(named),
    };
    if sought.chars().count() > LONGEST {
        let problem = Some(t::stop::SEARCH_TOO_LONG);
        return Ok(FoundActors { problem, ..FoundActors::from(found) });
    }
    let agents = list(view, Some("agent"), Some(sought));
    match tokio::try_join!(agents, list(view, None, Some(sought))) {
        Ok((agents, all)) => {
            found.extend(agents);
            found.extend(all);
            Ok(found.into())
        }
        Err(status) if matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded) => {
            let problem = Some(t::stop::SEARCH_TOO_SLOW);
            Ok(FoundActors { problem, ..FoundActors::from(found) })
        }
        Err(status) => Err(status),
    }
}

/// The principal with this id, or the agent with this name.
async fn named(view: &View, sought: &str) -> Result<Option<Principal>, Status> {
    let id = match view.tenant() {
        _ if IdParts::begins(sought) => sought.to_owned(),
        Some(tenant) => match PrincipalId::agent(tenant.slug(), &sought.to_lowercase()) {
            Ok(id) => id.into(),
            Err(_) => return Ok(None),
        },
        None => return Ok(None),
    };
    // No id is longer.
    if id.len() > 300 {
        return Ok(None);
    }
    let request = GetPrincipalRequest { id, ..GetPrincipalRequest::default() };
    match view.calls.call(&request).await {
        Ok(principal) => Ok(Some(principal)),
        Err(status) if matches!(status.code(), Code::NotFound | Code::InvalidArgument) => Ok(None),
        Err(status) => Err(status),
    }
}

/// Lists one principal more than is shown, to know whether there are more.
async fn list(view: &View, class: Option<&str>, q: Option<&str>) -> Result<Vec<Principal>, Status> {
    let request = ListPrincipalsRequest {
        tenant_id: view.shown_tenant().map(String::from),
        principal_class: class.map(str::to_owned),
        state: Some("active".to_owned()),
        q: q.map(str::to_owned),
        limit: i32::try_from(SHOWN + 1).ok(),
        ..ListPrincipalsRequest::default()
    };
    let listed = view.calls.call(&request).await?;
    Ok(listed.principals)
}

impl From<Vec<Principal>> for FoundActors {
    /// Keeps each principal once, in this order.
    fn from(principals: Vec<Principal>) -> Self {
        let mut actors: Vec<Actor> = Vec::new();
        for principal in principals {
            if !actors.iter().any(|actor| actor.id == principal.id) {
                actors.push(actor(principal));
            }
        }
        let more = actors.len() > SHOWN;
        actors.truncate(SHOWN);
        Self { actors, more, problem: None }
    }
}

fn actor(principal: Principal) -> Actor {
    let class = match principal.principal_class.as_str() {
        "agent" => t::stop::CLASS_AGENT,
        "human" => t::stop::PERSON,
        "external_app" => t::stop::EXTERNAL_APP,
        _ => t::stop::SYSTEM,
    };
    let state = principal.state.as_deref().filter(|state| *state != "active");
    let name = called(&principal.id, &principal.display_name).to_owned();
    Actor {
        class: state.map_or_else(|| class.to_owned(), |state| t::stop::in_state(class, state)),
        about: if name == principal.display_name { String::new() } else { principal.display_name },
        name,
        id: principal.id,
    }
}
