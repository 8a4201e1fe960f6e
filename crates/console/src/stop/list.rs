//! The current stops, and the targets that can be stopped.

use authority_model::proto::{
    delegation::ListDelegationsRequest,
    registry::{ListPrincipalsRequest, ListToolsRequest},
};

use super::{
    find::{FoundActors, find},
    in_force::{Active, InForce, in_force, named},
};
use crate::kit::{choice::Choice, prelude::*};

/// The maximum number of choices in a form. If there are more, the form takes an id.
const CHOICES: i32 = 200;

/// Records to choose from; `None` if there are too many.
type Choices = Option<Vec<Choice>>;

/// The targets that can be suspended in part.
struct Parts {
    subjects: Choices,
    delegations: Choices,
    tools: Choices,
}

#[derive(Template)]
#[template(path = "stop.html")]
struct StopPage {
    frame: Frame,
    /// The state of the stops that the person just created.
    done: Option<StopState>,
    stopped: Vec<Active>,
    /// The number of newer stops that are not listed.
    more: usize,
    may_stop: bool,
    sought: String,
    found: FoundActors,
    parts: Option<Parts>,
}

/// The state of stops that were just created.
enum StopState {
    InForce,
    /// The page was opened again later.
    Released,
}

pub(super) async fn list(view: View, query: Pairs) -> Response {
    view.answer(listed(&view, &query).await)
}

async fn listed(view: &View, query: &Pairs) -> Result<Response, Status> {
    who_may(view)?;
    let may_stop = view.may(rpc::CREATE_STOP_SIGNAL);
    let sought = query.text("q").trim().to_owned();
    let found =
        async { if may_stop { find(view, &sought).await } else { Ok(FoundActors::default()) } };
    let parts = async { if may_stop { Ok(Some(parts(view).await?)) } else { Ok(None) } };
    let ((stopped, more), found, parts) = tokio::try_join!(stopped(view), found, parts)?;
    let stop = StopPage {
        frame: view.frame(t::kit::STOP, Section::Stop),
        done: done(query, &stopped, more),
        stopped,
        more,
        may_stop,
        sought,
        found,
        parts,
    };
    Ok(page(StatusCode::OK, &stop))
}

/// The message about the stops that the address names: all are in force, or at least one was
/// released.
fn done(query: &Pairs, active: &[Active], more: usize) -> Option<StopState> {
    let mut ids = query.all("stopped").peekable();
    ids.peek()?;
    let are_active = ids.all(|id| active.iter().any(|stop| stop.id == id));
    match (are_active, more) {
        (true, _) => Some(StopState::InForce),
        (false, 0) => Some(StopState::Released),
        // They may be on a page that is not shown.
        (false, _) => None,
    }
}

/// A stop is urgent. A person who may not even read the stops gets the name of the responsible
/// role.
pub(super) fn who_may(view: &View) -> Result<(), Status> {
    if view.may(rpc::LIST_STOP_SIGNALS) {
        return Ok(());
    }
    Err(Status::permission_denied(t::stop::MAY_NOT_STOP))
}

async fn parts(view: &View) -> Result<Parts, Status> {
    let (subjects, delegations, tools) =
        tokio::try_join!(principals(view), delegations(view), tools(view))?;
    Ok(Parts { subjects, delegations, tools })
}

/// The choices. `None` if the list has another page.
fn choices(choices: impl Iterator<Item = (String, String)>, next: Option<&str>) -> Choices {
    let choice = |(value, label)| Choice { value, label, chosen: false };
    next.is_none().then(|| choices.map(choice).collect())
}

async fn principals(view: &View) -> Result<Choices, Status> {
    let request = ListPrincipalsRequest {
        tenant_id: view.shown_tenant().map(String::from),
        state: Some("active".to_owned()),
        limit: Some(CHOICES),
        ..ListPrincipalsRequest::default()
    };
    let listed = view.calls.call(&request).await?;
    let mut principals = listed.principals;
    principals.sort_by_key(|principal| principal.principal_class != "agent");
    let labelled = principals.into_iter().map(|principal| {
        let name = called(&principal.id, &principal.display_name);
        let label = t::stop::principal_option(name, &principal.display_name);
        (principal.id, label)
    });
    Ok(choices(labelled, listed.next_page_token.as_deref()))
}

async fn delegations(view: &View) -> Result<Choices, Status> {
    let request = ListDelegationsRequest {
        tenant_id: view.shown_tenant().map(String::from),
        state: Some("active".to_owned()),
        limit: Some(CHOICES),
        ..ListDelegationsRequest::default()
    };
    let listed = view.calls.call(&request).await?;
    let labelled = listed.delegations.into_iter().map(|delegation| {
        let (actions, to) = (delegation.actions.join(", "), short(&delegation.delegate_id));
        let label = t::stop::delegation_option(actions, to);
        (delegation.id, label)
    });
    Ok(choices(labelled, listed.next_page_token.as_deref()))
}

async fn tools(view: &View) -> Result<Choices, Status> {
    let request = ListToolsRequest {
        tenant_id: view.shown_tenant().map(String::from),
        state: Some("active".to_owned()),
        limit: Some(CHOICES),
        ..ListToolsRequest::default()
    };
    let listed = view.calls.call(&request).await?;
    let labelled = listed.tools.into_iter().map(|tool| {
        let label = t::stop::tool_option(tool.name, tool.actions.join(", "));
        (tool.id, label)
    });
    Ok(choices(labelled, listed.next_page_token.as_deref()))
}

async fn stopped(view: &View) -> Result<(Vec<Active>, usize), Status> {
    let InForce { stopped, more } = in_force(view, view.shown_tenant()).await?;
    Ok((named(view, stopped).await, more))
}
