//! Finds the principal for a stop or a list: by id, or by an agent's name.

use authority_client::{SURFACE, Surface};
use authority_ids::{IdParts, PrincipalRef};
use serde_json::{Value, json};

use crate::{
    confirm::Confirm,
    names::last_part,
    outcome::Failure,
    server::Server,
    text::{self, plain},
};

/// The largest page. The service searches for the name anywhere in an id: it may also find agents
/// with a longer name.
const MOST: u16 = 500;

/// Returns the id of the principal with this id, or of the only agent with this name.
///
/// # Errors
/// The principal does not exist, or several agents have the name. These errors occur before the
/// user is asked to confirm.
pub(crate) async fn resolved(
    server: &Server,
    named: &str,
    confirm: Confirm,
) -> Result<PrincipalRef, Failure> {
    let is_id = named.contains(':');
    // An API key cannot read principals, and with `--yes` the check would only delay the stop. The
    // service refuses unknown ids.
    if is_id && (confirm.yes || server.opens(Surface::ApiKeys)) {
        return Ok(named.into());
    }
    if server.opens(Surface::ApiKeys) {
        return Err(whole_id(named));
    }
    if is_id {
        let path = server.path(&[SURFACE, "principals", named]);
        server.get(&path, &()).await.map_err(|refusal| {
            let list = server.command("principals list --principal-class agent");
            refusal.with(&format!("no agent was stopped; list the agents with: {list}"))
        })?;
        return Ok(named.into());
    }
    found(server, named, "; no agent was stopped").await
}

/// Replaces an agent's name in a list's filter by its id. An id stays as it is; the service checks
/// it.
///
/// # Errors
/// No agent has the name, or several agents have it.
pub(crate) async fn resolve(server: &Server, filter: &mut Option<String>) -> Result<(), Failure> {
    let Some(named) = filter.as_deref().filter(|named| !named.contains(':')) else {
        return Ok(());
    };
    if server.opens(Surface::ApiKeys) {
        return Err(whole_id(named));
    }
    *filter = Some(found(server, named, "").await?.into());
    Ok(())
}

/// Returns the id of the only agent with this name.
async fn found(server: &Server, named: &str, outcome: &str) -> Result<PrincipalRef, Failure> {
    let query = json!({"q": named, "principal_class": "agent", "limit": MOST});
    let found = server.json(&server.get(&server.path(&[SURFACE, "principals"]), &query).await?)?;
    one(&found["principals"], named).map_err(|problem| {
        let list = server.command("principals list --principal-class agent");
        Failure::new(format!("{problem}{outcome}\nlist the agents with: {list}"))
    })
}

fn whole_id(named: &str) -> Failure {
    Failure::usage(format!(
        "an API key cannot look up `{0}`: give the whole id, svc:agent:TENANT:{0}",
        plain(named)
    ))
}

/// Returns the id of the only agent with this name.
fn one(agents: &Value, named: &str) -> Result<PrincipalRef, String> {
    let agents = agents.as_array().into_iter().flatten();
    let ids = agents.map(|agent| text::of(agent, "id"));
    let ids: Vec<_> = ids.filter(|id| IdParts::is(id, "agent") && last_part(id) == named).collect();
    match ids[..] {
        [] => Err(format!("no agent is named `{}`", plain(named))),
        [id] => Ok(id.into()),
        _ => Err(format!(
            "{} agents are named `{}`: give the id of one: {}",
            ids.len(),
            plain(named),
            plain(&ids.join(", "))
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_one_agent() {
        let agents = json!([
            {"id": "svc:agent:acme:bot"}, {"id": "svc:agent:acme:bot-2"},
            {"id": "svc:agent:acme:spare"}, {"id": "svc:agent:other:spare"}]);
        assert_eq!(one(&agents, "bot").unwrap(), "svc:agent:acme:bot");
        let problem = one(&agents, "spare").unwrap_err();
        assert!(problem.starts_with("2 agents are named `spare`"), "{problem}");
        assert!(problem.ends_with("svc:agent:acme:spare, svc:agent:other:spare"), "{problem}");
        assert_eq!(one(&agents, "bo\u{1b}").unwrap_err(), r"no agent is named `bo\u{1b}`");
    }
}
