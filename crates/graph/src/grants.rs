//! Describes the authority of an entity and its grantors.

use authority_ids::{DelegationRef, PrincipalRef};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::tenant::TenantGraph;
use authority_decision::{
    Budget, chain,
    moment::Window,
    pattern::Pattern,
    reason::Reason,
    records::{self, Constraints, Used},
};

/// An authority of an entity.
#[derive(Clone, Debug)]
pub struct GrantView {
    /// `delegation`, `uses` or `acts_in`.
    pub kind: &'static str,
    pub id: String,
    /// The ids from the delegation itself up to its root.
    pub chain: Vec<DelegationRef>,
    pub actions: Vec<String>,
    pub bounds: Map<String, Value>,
    /// `active`, or a word for the reason why the authority is not active.
    pub state: &'static str,
    /// The reason as a sentence; `None` while it is active.
    pub reason: Option<String>,
    /// Its budgets and the budgets of the delegations above it, without the used parts.
    pub budgets: Vec<Budget>,
}

/// The reason why a grant is not active, as a word and as a sentence.
type Problem = (&'static str, String);

impl TenantGraph {
    /// Whether the tenant has a principal with this id.
    pub fn has_principal(&self, id: &PrincipalRef) -> bool {
        self.principals.get(id).is_some()
    }

    /// Returns all authorities of a principal at a time, ordered by kind and id.
    pub fn grants_of(&self, principal_id: &PrincipalRef, at: DateTime<Utc>) -> Vec<GrantView> {
        // An inactive principal cannot use its grants.
        let inactive = (!self.is_active(principal_id))
            .then(|| ("subject_suspended", format!("{principal_id} is not active")));
        let delegations = self.delegations.on(principal_id).iter().map(|leaf| {
            let links = self.chain(leaf).0;
            let view = GrantView {
                chain: links.iter().map(|link| link.id.clone()).collect(),
                budgets: links
                    .iter()
                    .flat_map(|link| Budget::of(&link.id, link.line(), &link.bounds, at))
                    .collect(),
                ..view("delegation", &leaf.id, texts(&leaf.actions), object(&leaf.bounds))
            };
            (view, self.chain_problem(&links, at))
        });
        let uses = self.uses.on(principal_id).iter().map(|node| {
            let row = &node.row;
            let used = self.used(node);
            let (actions, live) = match &used {
                Used::Action(pattern) => (vec![pattern.to_string()], true),
                Used::Tool(tool) => (texts(&tool.actions), tool.live),
                Used::Model(model) => (texts(&model.actions), model.live),
                Used::ExternalApp(app) => (texts(&app.actions), app.live),
                Used::Resource(_) => (Vec::new(), true),
                Used::Missing(_) => (Vec::new(), false),
            };
            let (bounds, budgets) = match &row.constraints {
                Constraints::Bounds(bounds) => {
                    (object(bounds.as_ref()), Budget::of(&row.id, &row.id, bounds, at))
                }
                Constraints::Malformed(_) => (Map::new(), Vec::new()),
            };
            let of_row = row_problem(row, live, &node.used_id);
            let problem = window_problem(&row.id, row.window, at).or(of_row);
            (GrantView { budgets, ..view("uses", &row.id, actions, bounds) }, problem)
        });
        let acts_in = self.acts_in.on(principal_id).iter().map(|node| {
            let row = &node.fact;
            let actions = row.allowed_actions.as_deref().map(texts).unwrap_or_default();
            let workspace = ("workspace_id".to_owned(), row.workspace_id.as_str().into());
            let live = self.workspaces.get(&row.workspace_id).is_some_and(|place| place.live);
            let gone = (!live).then(|| unavailable(&row.workspace_id));
            let problem = window_problem(&row.id, row.window, at).or(gone);
            (view("acts_in", &row.id, actions, Map::from_iter([workspace])), problem)
        });
        let each = delegations.chain(uses).chain(acts_in);
        each.map(|(view, problem)| with_problem(view, inactive.clone().or(problem))).collect()
    }

    fn is_active(&self, principal_id: &PrincipalRef) -> bool {
        self.principals.get(principal_id).is_some_and(|principal| principal.fact.active)
    }

    fn chain_problem(
        &self,
        links: &[std::sync::Arc<records::Delegation>],
        at: DateTime<Utc>,
    ) -> Option<Problem> {
        if let Err(broken) = chain::in_force(links, |id| self.is_active(id), at) {
            let word = match broken.reason {
                Reason::DelegationNotYetValid => "not_yet_valid",
                Reason::DelegationExpired => "expired",
                Reason::DelegationSuspended => "suspended",
                Reason::DelegationRevoked => "revoked",
                Reason::DelegatorInactive => "delegator_inactive",
                _ => "incomplete",
            };
            return Some((word, broken.to_string()));
        }
        let parent = links.iter().skip(1).find(|parent| !parent.can_delegate)?;
        Some(("not_delegable", format!("{} does not permit delegation", parent.id)))
    }
}

fn view(
    kind: &'static str,
    id: &str,
    actions: Vec<String>,
    bounds: Map<String, Value>,
) -> GrantView {
    let (id, chain, budgets) = (id.to_owned(), Vec::new(), Vec::new());
    GrantView { kind, id, chain, actions, bounds, state: "active", reason: None, budgets }
}

fn with_problem(view: GrantView, problem: Option<Problem>) -> GrantView {
    match problem {
        None => view,
        Some((state, reason)) => GrantView { state, reason: Some(reason), ..view },
    }
}

fn window_problem(id: &str, window: Window, at: DateTime<Utc>) -> Option<Problem> {
    let word = if window.has_started(at) { "expired" } else { "not_yet_valid" };
    window.problem(at).map(|problem| (word, format!("{id} {problem}")))
}

/// Returns the problem of a `uses` row within its window, if any.
fn row_problem(row: &records::UsesRow, live: bool, used_id: &str) -> Option<Problem> {
    if !row.allowed {
        return Some(("denied", format!("{} denies it", row.id)));
    }
    if !live {
        return Some(unavailable(used_id));
    }
    match &row.constraints {
        Constraints::Bounds(_) => None,
        Constraints::Malformed(why) => {
            Some(("unreadable", format!("the constraints of {} cannot be read: {why}", row.id)))
        }
    }
}

fn unavailable(id: &str) -> Problem {
    ("unavailable", format!("{id} does not exist or is not active"))
}

fn texts(patterns: &[Pattern]) -> Vec<String> {
    patterns.iter().map(ToString::to_string).collect()
}

fn object(value: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}
