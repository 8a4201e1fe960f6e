//! The consequences of ending a record, as far as the API reports them: for a principal or a
//! delegation, the dependent permissions; for a tenant, all of its records.

use authority_ids::{DelegationRef, EntityRef, PrincipalRef, TenantRef};
use authority_model::proto::{
    delegation::{BlastRadius, Delegation, GetBlastRadiusRequest, GetPrincipalBlastRadiusRequest},
    registry::{GetPolicyRequest, Policy},
};

use super::call::count;
use crate::kit::{kinds::Kind, prelude::*};

/// The consequences of ending a record.
pub(super) enum Depends {
    /// The API does not report consequences for this kind of record.
    Unknown,
    /// The consequences could not be read now, or the role may not read them.
    Unread,
    Known(EndedRecords),
}

/// The number of ended records, and the first of them.
pub(super) struct EndedRecords {
    pub(super) sentence: String,
    /// The delegations, with the names of both parties.
    pub(super) delegations: Vec<(Named, Named, Delegation)>,
    /// Delegations that are not listed.
    pub(super) more: usize,
    /// The agents that act under these delegations.
    pub(super) agents: Vec<Named>,
    pub(super) more_agents: usize,
}

impl EndedRecords {
    /// A sentence without a list.
    fn alone(sentence: String) -> Self {
        let (delegations, agents) = (Vec::new(), Vec::new());
        Self { sentence, delegations, more: 0, agents, more_agents: 0 }
    }
}

/// The maximum number of delegations, and of agents' names, on the page.
const LISTED: usize = 20;
/// The kinds of records that are counted for a tenant.
const COUNTED: [&str; 5] = ["principals", "delegations", "policies", "tools", "workspaces"];

impl Depends {
    /// Reads the consequences for a record with these members.
    pub(super) async fn of(view: &View, kind: &Kind, members: &Map<String, Value>) -> Self {
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
        let id = text("id");
        let found = match kind.singular.as_str() {
            "applies_to" => of_target(view, text("policy_id").into(), text("target_class")).await,
            "delegation" => of_delegation(view, &id.into()).await,
            "principal" => of_principal(view, id.into()).await,
            "tenant" => of_tenant(view, &id.into()).await,
            _ => return Self::Unknown,
        };
        found.map_or(Self::Unread, Self::Known)
    }
}

async fn of_delegation(view: &View, id: &DelegationRef) -> Option<EndedRecords> {
    if !view.may(rpc::GET_BLAST_RADIUS) {
        return None;
    }
    // The answer has the delegation itself as well.
    let limit = i32::try_from(LISTED + 1).ok();
    let request = GetBlastRadiusRequest { id: id.into(), limit };
    let mut radius = view.calls.call(&request).await.ok()?;
    let sentence = below(&radius);
    radius.delegations.retain(|one| *id != one.id.as_str());
    radius.delegation_total = radius.delegation_total.saturating_sub(1);
    Some(ended(view, radius, sentence).await)
}

async fn of_principal(view: &View, id: PrincipalRef) -> Option<EndedRecords> {
    if !view.may(rpc::GET_PRINCIPAL_BLAST_RADIUS) {
        return None;
    }
    let limit = i32::try_from(LISTED).ok();
    let request = GetPrincipalBlastRadiusRequest { id: id.into(), limit };
    let radius = view.calls.call(&request).await.ok()?;
    let sentence = held(&radius);
    Some(ended(view, radius, sentence).await)
}

/// Describes where a target's policy would apply without this target.
async fn of_target(view: &View, policy_id: EntityRef, target: &str) -> Option<EndedRecords> {
    if !view.may(rpc::GET_POLICY) {
        return None;
    }
    let request = GetPolicyRequest { id: policy_id.into() };
    let policy = view.calls.call(&request).await.ok()?;
    Some(EndedRecords::alone(without_target(&policy, target)))
}

fn without_target(policy: &Policy, target: &str) -> String {
    let name = policy.name.as_deref().unwrap_or(short(&policy.id));
    let rest: Vec<_> = policy.applies_to.iter().filter(|one| *one != target).cloned().collect();
    match (policy.state.as_deref(), rest.is_empty()) {
        (Some("retired"), _) => t::records::target_of_retired(name),
        (Some("active"), true) => t::records::last_target(name),
        (Some("active"), false) => t::records::target(name, listed(&rest)),
        (_, true) => t::records::last_target_of_draft(name),
        (_, false) => t::records::target_of_draft(name, listed(&rest)),
    }
}

/// Counts a tenant's records of the most important kinds.
async fn of_tenant(view: &View, id: &TenantRef) -> Option<EndedRecords> {
    let counts = some_at_once(COUNTED.iter().map(|path| counted(view, path, id))).await;
    let counts: Option<Vec<String>> = counts.into_iter().collect();
    Some(EndedRecords::alone(t::records::tenant_ends(listed(&counts?))))
}

async fn counted(view: &View, path: &str, tenant: &str) -> Option<String> {
    let kind = Kind::at(path)?;
    let total = count(view, path, Some(tenant), &Map::new()).await?.ok()?;
    Some(t::records::count(total, &kind.one, kind.many.to_lowercase()))
}

/// `a, b and c`.
pub(super) fn listed(parts: &[String]) -> String {
    match parts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => t::records::and_last(rest.join(", "), last),
        None => String::new(),
    }
}

async fn ended(view: &View, radius: BlastRadius, sentence: String) -> EndedRecords {
    let delegations: Vec<_> = radius.delegations.into_iter().take(LISTED).collect();
    let agents: Vec<_> = radius.agents.into_iter().take(LISTED).collect();
    let parties = delegations.iter().flat_map(|one| {
        let from = one.delegator_id.iter();
        from.chain([&one.delegate_id])
    });
    let ids = parties.chain(&agents).cloned().collect();
    let names = Names::to_call(view, ids).await;
    let ended = |one: Delegation| {
        let from = names.called(one.delegator_id.clone().unwrap_or_default());
        (from, names.called(one.delegate_id.clone()), one)
    };
    EndedRecords {
        sentence,
        more: number(radius.delegation_total).saturating_sub(delegations.len()),
        more_agents: number(radius.agent_total).saturating_sub(agents.len()),
        delegations: delegations.into_iter().map(ended).collect(),
        agents: agents.into_iter().map(|id| names.called(id)).collect(),
    }
}

fn number(total: i32) -> usize {
    usize::try_from(total).unwrap_or_default()
}

/// The consequences of ending a delegation, without the delegation itself.
fn below(radius: &BlastRadius) -> String {
    let agents = radius.agent_total;
    let (below, agents) = match number(radius.delegation_total).saturating_sub(1) {
        0 => (t::agents::NONE_BELOW.to_owned(), t::records::agents_under_it(agents)),
        below => (t::records::below(below), t::records::agents_under_them(agents)),
    };
    format!("{below} {agents}")
}

/// The consequences of ending a principal.
fn held(radius: &BlastRadius) -> String {
    let (held, agents) = (radius.delegation_total, radius.agent_total);
    let agents = match held {
        0 => return t::records::HOLDS_NONE.to_owned(),
        1 => t::records::others_under_it(agents),
        _ => t::records::others_under_them(agents),
    };
    format!("{} {agents}", t::records::holds(held))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn radius(delegation_total: i32, agent_total: i32) -> BlastRadius {
        BlastRadius { delegation_total, agent_total, ..BlastRadius::default() }
    }

    #[test]
    fn what_ends_with_a_delegation_is_counted_without_it() {
        assert_eq!(below(&radius(1, 1)), "No delegation is below it. 1 agent acts under it.");
        assert_eq!(
            below(&radius(4, 2)),
            "3 delegations below it end too. 2 agents act under them."
        );
    }

    #[test]
    fn what_ends_with_a_principal_is_counted() {
        assert_eq!(held(&radius(0, 0)), "No delegation that is in force is held or given by it.");
        assert_eq!(
            held(&radius(1, 0)),
            "1 delegation that it holds or gave ends with it. 0 others act under it."
        );
        assert!(held(&radius(3, 2)).ends_with("all below them. 2 others act under them."));
    }

    #[test]
    fn it_is_said_where_a_policy_applies_without_a_target() {
        let policy = |state: &str, targets: &[&str]| Policy {
            name: Some("four eyes".to_owned()),
            state: Some(state.to_owned()),
            applies_to: targets.iter().map(ToString::to_string).collect(),
            ..Policy::default()
        };
        let last = without_target(&policy("active", &["action:a"]), "action:a");
        assert!(last.ends_with("applies to every action, while it is in effect."), "{last}");
        let draft = without_target(&policy("draft", &["action:a"]), "action:a");
        assert!(draft.ends_with("once it is active."), "{draft}");
        let rest = without_target(&policy("active", &["action:a", "action:b"]), "action:a");
        assert!(rest.starts_with("The policy “four eyes” then applies only to action:b"), "{rest}");
    }

    #[test]
    fn counts_are_listed_as_in_a_sentence() {
        let parts =
            |parts: &[&str]| listed(&parts.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(parts(&["1 a", "2 b", "3 c"]), "1 a, 2 b and 3 c");
        assert_eq!((parts(&["1 a"]), parts(&[])), ("1 a".to_owned(), String::new()));
    }
}
