//! A second evaluator, written directly from docs/reference/decision.md in plain style. It is slow
//! and literal, and shares only the types of its input with the core. It represents words and codes
//! as strings.

mod authority;
mod gate;
mod input;
mod reality;
mod rules;

use std::sync::Arc;

use authority_decision::{
    Draft, Facts, Pattern, bounds::Bounds, facts::*, levels::*, moment::Window,
};
use authority_ids::{EntityRef, PrincipalRef};
use chrono::{DateTime, Datelike, TimeDelta, Timelike, Utc};
use serde_json::Value;

#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub decision: &'static str,
    pub reason_code: String,
    pub obligations: Vec<String>,
    pub stop_conditions: Vec<String>,
    /// The number of people, and whether legal must be among them.
    pub approvals: Option<(u32, bool)>,
}

pub(super) struct World<'a> {
    ask: &'a Draft,
    graph: &'a Gathered,
    facts: &'a Facts,
    at: DateTime<Utc>,
    /// All tools of the tenant.
    tools: &'a [Arc<Tool>],
}

/// An authority that may permit the action.
#[derive(Clone)]
pub(super) struct Way<'a> {
    id: String,
    kind: u8,
    links: Vec<&'a Delegation>,
    uses: Option<&'a Uses>,
    acts_in: Option<&'a ActsIn>,
    unknown: bool,
    nothing: bool,
    rank: usize,
}

pub(super) fn answer(ask: &Draft, facts: &Facts, at: DateTime<Utc>, tools: &[Arc<Tool>]) -> Answer {
    let world = World { ask, graph: &facts.gathered, facts, at, tools };
    let mut best: Option<(usize, String)> = None;
    for way in world.ways() {
        match world.walk(&way) {
            None => return world.rules(&way),
            Some((row, code)) => {
                if best.as_ref().is_none_or(|(furthest, _)| row > *furthest) {
                    best = Some((row, code));
                }
            }
        }
    }
    deny(best.unwrap().1)
}

pub(super) fn deny(code: impl Into<String>) -> Answer {
    let (obligations, stop_conditions) = (vec![], vec![]);
    Answer {
        decision: "deny",
        reason_code: code.into(),
        obligations,
        stop_conditions,
        approvals: None,
    }
}

pub(super) fn matches(pattern: &Pattern, action: &str) -> bool {
    let pattern = pattern.to_string();
    if pattern == "*" {
        true
    } else if let Some(stem) = pattern.strip_suffix('*') {
        action.len() > stem.len() && action.starts_with(stem)
    } else {
        pattern == action
    }
}

pub(super) fn any_matches(patterns: &[Pattern], action: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, action))
}

/// Returns the rank of the most exact pattern that matches: 0 for an exact one, more for wider
/// ones.
pub(super) fn rank(patterns: &[Pattern], action: &str) -> Option<usize> {
    let mut best = None;
    for pattern in patterns.iter().filter(|pattern| matches(pattern, action)) {
        let text = pattern.to_string();
        let rank = match (text.as_str(), text.ends_with(".*")) {
            ("*", _) => 1000,
            (_, false) => 0,
            (_, true) => 500 - text.matches('.').count(),
        };
        if best.is_none_or(|best| rank < best) {
            best = Some(rank);
        }
    }
    best
}

pub(super) fn in_window(window: Window, at: DateTime<Utc>) -> bool {
    window.from.is_none_or(|from| at >= from) && window.until.is_none_or(|until| at < until)
}

pub(super) fn hours_hold(bounds: &Bounds, facts: &Facts, at: DateTime<Utc>) -> bool {
    let Some(hours) = &bounds.hours else { return true };
    let json = serde_json::to_value(hours).unwrap();
    let offset = match json.get("time_zone") {
        None if json["utc_offset"] == "+02:00" => 7200,
        None => 0,
        Some(name) => match facts.zones.iter().find(|zone| zone.name == *name) {
            Some(zone) => zone.offset_seconds,
            None => return false,
        },
    };
    let local = at + TimeDelta::seconds(offset.into());
    let day = local.weekday().to_string().to_lowercase();
    let now = format!("{:02}:{:02}", local.hour(), local.minute());
    let (from, to) = (json["from"].as_str().unwrap(), json["to"].as_str().unwrap());
    json["days"].as_array().unwrap().iter().any(|d| *d == day) && *from <= *now && *now < *to
}

impl<'a> World<'a> {
    pub(super) fn text(&self, member: &str) -> Option<&'a str> {
        self.ask.context.get(member)?.as_str()
    }

    pub(super) fn amount(&self) -> Option<f64> {
        self.ask.context.get("amount")?.as_f64()
    }

    pub(super) fn ways(&self) -> Vec<Way<'a>> {
        let none = Way {
            id: String::new(),
            kind: 0,
            links: vec![],
            uses: None,
            acts_in: None,
            unknown: false,
            nothing: false,
            rank: 0,
        };
        let mut ways = vec![];
        if let Some(id) = &self.ask.delegation_id {
            for chain in &self.graph.delegations {
                if chain.0[0].id == *id {
                    ways.push(Way {
                        links: chain.0.iter().map(|l| &**l).collect(),
                        ..none.clone()
                    });
                }
            }
            if ways.is_empty() {
                ways.push(Way { unknown: true, ..none });
            }
            return ways;
        }
        let action = &self.ask.action;
        for chain in &self.graph.delegations {
            let own = &chain.0[0];
            if own.delegate_id == self.ask.subject
                && let Some(rank) = rank(&own.actions, action)
            {
                let links = chain.0.iter().map(|l| &**l).collect();
                ways.push(Way { id: own.id.to_string(), links, rank, ..none.clone() });
            }
        }
        for uses in self.graph.uses.iter().filter(|uses| uses.row.allowed) {
            let rank = match &uses.used {
                Used::Action(pattern) => rank(std::slice::from_ref(pattern), action),
                Used::Tool(t) if !t.live => None,
                Used::Tool(t) if self.ask.tool_id.as_ref().is_some_and(|id| *id != t.id) => None,
                Used::Tool(t) => rank(&t.actions, action),
                Used::Model(m) if m.live => rank(&m.actions, action),
                Used::ExternalApp(app) if app.live => rank(&app.actions, action),
                _ => None,
            };
            if let Some(rank) = rank {
                let id = uses.row.id.to_string();
                ways.push(Way { id, kind: 1, uses: Some(uses), rank, ..none.clone() });
            }
        }
        for row in &self.graph.acts_in {
            if self.ask.workspace_id.as_ref() == Some(&row.workspace_id)
                && let Some(allowed) = &row.allowed_actions
                && let Some(rank) = rank(allowed, action)
            {
                ways.push(Way {
                    id: row.id.to_string(),
                    kind: 2,
                    acts_in: Some(row),
                    rank,
                    ..none.clone()
                });
            }
        }
        ways.sort_by_key(|way| (way.rank, way.id.clone(), way.kind));
        if ways.is_empty() {
            ways.push(Way { nothing: true, ..none });
        }
        ways
    }

    /// Returns the first row of the table that fails, with its reason code.
    pub(super) fn walk(&self, way: &Way<'a>) -> Option<(usize, String)> {
        (1..=20).find_map(|row| self.row(row, way).map(|code| (row, code.to_owned())))
    }

    #[expect(clippy::too_many_lines, reason = "one table, as docs/reference/decision.md has it")]
    pub(super) fn row(&self, row: usize, way: &Way<'a>) -> Option<&'static str> {
        match row {
            1 => {
                let tenant = self.graph.tenant.as_ref();
                (!tenant.is_some_and(|tenant| tenant.active)).then_some("tenant_inactive")
            }
            2 => match &self.graph.subject {
                None => Some("subject_unknown"),
                Some(subject) if !subject.active => Some("subject_suspended"),
                _ => None,
            },
            3 => {
                let actors = self.actors(way);
                let signals = &self.graph.stop_signals;
                let stopped = signals.iter().any(|signal| actors.contains(&&signal.actor_id));
                stopped.then_some("actor_stopped")
            }
            4 => self
                .graph
                .quarantines
                .iter()
                .any(|q| self.quarantined(q, way))
                .then_some("capability_quarantined"),
            5 if way.unknown => Some("delegation_unknown"),
            5 => {
                let other = !way.links.is_empty() && way.links[0].delegate_id != self.ask.subject;
                let lacks =
                    |id: &PrincipalRef| way.links.iter().all(|link| link.delegator_id != *id);
                let stranger = self.ask.on_behalf_of.as_ref().is_some_and(lacks);
                (other || stranger).then_some("delegation_mismatch")
            }
            6 => self.in_force(way),
            7 => self.covered(way),
            8 => self.denied(way).then_some("capability_denied"),
            9 => self.bounded(way),
            10 => self.jurisdiction(way),
            11 => {
                let id = self.ask.workspace_id.as_ref()?;
                let open =
                    self.graph.workspace.as_ref().is_some_and(|w| w.live) && self.acts_in(id);
                (!open).then_some("workspace_access_missing")
            }
            12 => {
                let id = self.ask.resource_id.as_ref()?;
                let live = self.graph.resource.as_ref().is_some_and(|resource| {
                    resource.live && self.at_home(resource.workspace_id.as_ref())
                });
                (!live || !self.granted(id, way)).then_some("resource_access_missing")
            }
            13 => {
                let id = self.ask.project_id.as_ref()?;
                (!self.reached() || !self.granted(id, way)).then_some("project_access_missing")
            }
            14 => {
                let tool = self.one_tool(way)?;
                let fits = tool.is_some_and(|t| {
                    t.live
                        && any_matches(&t.actions, &self.ask.action)
                        && self.at_home(t.workspace_id.as_ref())
                });
                (!fits).then_some("tool_mismatch")
            }
            15 => {
                // An authority for one tool does not matter here.
                let tools = match &self.ask.tool_id {
                    Some(_) => self.graph.tool.iter().collect(),
                    None => self.performing(),
                };
                let known = self.ask.tool_definition_digest.as_ref();
                let unpinned = |t: &&Arc<Tool>| t.definition == Some(Definition::Unpinned);
                let other = |t: &&Arc<Tool>| matches!(&t.definition, Some(Definition::Pinned(own)) if known != Some(own));
                if tools.iter().any(unpinned) {
                    return Some("capability_quarantined");
                }
                tools.iter().any(other).then_some("tool_definition_changed")
            }
            16 => {
                let lacks = |member: &String| match member.as_str() {
                    "resource_id" => self.ask.resource_id.is_none(),
                    "workspace_id" => self.ask.workspace_id.is_none(),
                    member => !self.ask.context.contains_key(member),
                };
                let mut binding = self.binding(way).into_iter();
                binding.any(|t| t.requires.iter().any(lacks)).then_some("context_incomplete")
            }
            17 => self.input_is_bad(way).then_some("context_invalid"),
            18 => {
                let unknown = self.ask.purpose.is_some() && self.graph.purpose.is_none();
                unknown.then_some("purpose_unknown")
            }
            19 => self.purpose_refused().then_some("purpose_not_admitted"),
            _ => {
                for bound in way.links.iter().map(|link| &link.bounds.purposes) {
                    match &self.ask.purpose {
                        _ if bound.is_empty() => {}
                        None => return Some("purpose_required"),
                        Some(purpose) if bound.contains(purpose) => {}
                        Some(_) => return Some("purpose_out_of_scope"),
                    }
                }
                None
            }
        }
    }

    /// Returns the subject and all parties of the delegation chain.
    pub(super) fn actors(&self, way: &Way<'a>) -> Vec<&'a PrincipalRef> {
        let mut actors = vec![&self.ask.subject];
        for link in &way.links {
            actors.push(&link.delegate_id);
            actors.push(&link.delegator_id);
        }
        actors
    }

    /// Returns whether a thing may be used: it must not belong to another workspace than the named
    /// one.
    pub(super) fn at_home(&self, workspace: Option<&EntityRef>) -> bool {
        match (workspace, &self.ask.workspace_id) {
            (Some(own), Some(named)) => own == named,
            _ => true,
        }
    }

    pub(super) fn quarantined(&self, q: &Quarantine, way: &Way<'a>) -> bool {
        if let Some(id) = &q.subject_id
            && !self.actors(way).contains(&id)
        {
            return false;
        }
        if let Some(pattern) = &q.action
            && !matches(pattern, &self.ask.action)
        {
            return false;
        }
        match &q.delegation_id {
            None => true,
            Some(id) => way.links.iter().any(|link| link.id == *id),
        }
    }
}
