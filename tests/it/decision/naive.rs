//! A second evaluator, written straight from decision.md in plain style: slow, literal, and sharing
//! nothing with the core but the types of its inputs. Words and codes are texts here.

use agent_authority::decision::{
    Draft, Facts, Pattern, bounds::Bounds, facts::*, levels::*, moment::Window,
};
use chrono::{DateTime, Datelike, TimeDelta, Timelike, Utc};
use serde_json::Value;

#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub decision: &'static str,
    pub reason_code: String,
    pub obligations: Vec<String>,
    pub stop_conditions: Vec<String>,
    /// People, and whether legal must be among them.
    pub approvals: Option<(u32, bool)>,
}

struct World<'a> {
    ask: &'a Draft,
    graph: &'a Gathered,
    facts: &'a Facts,
    at: DateTime<Utc>,
}

/// An authority that may cover the action.
#[derive(Clone)]
struct Way<'a> {
    id: String,
    kind: u8,
    links: Vec<&'a Delegation>,
    uses: Option<&'a Uses>,
    acts_in: Option<&'a ActsIn>,
    unknown: bool,
    nothing: bool,
    rank: usize,
}

pub(super) fn answer(ask: &Draft, facts: &Facts, at: DateTime<Utc>) -> Answer {
    let world = World { ask, graph: &facts.gathered, facts, at };
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

fn deny(code: impl Into<String>) -> Answer {
    let (obligations, stop_conditions) = (vec![], vec![]);
    Answer {
        decision: "deny",
        reason_code: code.into(),
        obligations,
        stop_conditions,
        approvals: None,
    }
}

fn matches(pattern: &Pattern, action: &str) -> bool {
    let pattern = pattern.to_string();
    if pattern == "*" {
        true
    } else if let Some(stem) = pattern.strip_suffix('*') {
        action.len() > stem.len() && action.starts_with(stem)
    } else {
        pattern == action
    }
}

fn any_matches(patterns: &[Pattern], action: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, action))
}

/// 0 for exact, more for wider.
fn rank(patterns: &[Pattern], action: &str) -> Option<usize> {
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

fn in_window(window: Window, at: DateTime<Utc>) -> bool {
    window.from.is_none_or(|from| at >= from) && window.until.is_none_or(|until| at < until)
}

fn hours_hold(bounds: &Bounds, at: DateTime<Utc>) -> bool {
    let Some(hours) = &bounds.hours else { return true };
    let json = serde_json::to_value(hours).unwrap();
    let offset = if json["utc_offset"] == "+02:00" { 2 } else { 0 };
    let local = at + TimeDelta::hours(offset);
    let day = local.weekday().to_string().to_lowercase();
    let now = format!("{:02}:{:02}", local.hour(), local.minute());
    let (from, to) = (json["from"].as_str().unwrap(), json["to"].as_str().unwrap());
    json["days"].as_array().unwrap().iter().any(|d| *d == day) && *from <= *now && *now < *to
}

impl<'a> World<'a> {
    fn text(&self, member: &str) -> Option<&'a str> {
        self.ask.context.get(member)?.as_str()
    }

    fn amount(&self) -> Option<f64> {
        self.ask.context.get("amount")?.as_f64()
    }

    fn ways(&self) -> Vec<Way<'a>> {
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
                ways.push(Way { id: own.id.clone(), links, rank, ..none.clone() });
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
                let id = uses.row.id.clone();
                ways.push(Way { id, kind: 1, uses: Some(uses), rank, ..none.clone() });
            }
        }
        for row in &self.graph.acts_in {
            if self.ask.workspace_id.as_ref() == Some(&row.workspace_id)
                && let Some(allowed) = &row.allowed_actions
                && let Some(rank) = rank(allowed, action)
            {
                ways.push(Way {
                    id: row.id.clone(),
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

    /// Table row and code of the first row that fails.
    fn walk(&self, way: &Way<'a>) -> Option<(usize, String)> {
        (1..=18).find_map(|row| self.row(row, way).map(|code| (row, code.to_owned())))
    }

    fn row(&self, row: usize, way: &Way<'a>) -> Option<&'static str> {
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
                let mut actors = vec![&self.ask.subject];
                actors.extend(way.links.iter().map(|link| &link.delegate_id));
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
                other.then_some("delegation_mismatch")
            }
            6 => self.in_force(way),
            7 => self.covered(way),
            8 => self.denied().then_some("capability_denied"),
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
                let live = self.graph.resource.as_ref().is_some_and(|resource| resource.live);
                (!live || !self.granted(id, way)).then_some("resource_access_missing")
            }
            13 => {
                let id = self.ask.project_id.as_ref()?;
                (!self.reached() || !self.granted(id, way)).then_some("project_access_missing")
            }
            14 => {
                self.ask.tool_id.as_ref()?;
                let tool = self.graph.tool.as_ref();
                let fits =
                    tool.is_some_and(|t| t.live && any_matches(&t.actions, &self.ask.action));
                (!fits).then_some("tool_mismatch")
            }
            15 => {
                let lacks = |member: &String| match member.as_str() {
                    "resource_id" => self.ask.resource_id.is_none(),
                    "workspace_id" => self.ask.workspace_id.is_none(),
                    member => !self.ask.context.contains_key(member),
                };
                self.tool(way)?.requires.iter().any(lacks).then_some("context_incomplete")
            }
            16 => {
                let unknown = self.ask.purpose.is_some() && self.graph.purpose.is_none();
                unknown.then_some("purpose_unknown")
            }
            17 => self.purpose_refused().then_some("purpose_not_admitted"),
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

    fn quarantined(&self, q: &Quarantine, way: &Way<'a>) -> bool {
        if let Some(id) = &q.subject_id
            && *id != self.ask.subject
            && !way.links.iter().any(|link| link.delegate_id == *id)
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

    fn in_force(&self, way: &Way<'a>) -> Option<&'static str> {
        let window = |window: Window| {
            if window.from.is_some_and(|from| self.at < from) {
                Some("delegation_not_yet_valid")
            } else if window.until.is_some_and(|until| self.at >= until) {
                Some("delegation_expired")
            } else {
                None
            }
        };
        if let Some(uses) = way.uses {
            return window(uses.row.window);
        }
        if let Some(row) = way.acts_in {
            return window(row.window);
        }
        for link in &way.links {
            if let Some(code) = window(link.window) {
                return Some(code);
            }
            match link.state.word() {
                "active" => {}
                "suspended" => return Some("delegation_suspended"),
                _ => return Some("delegation_revoked"),
            }
        }
        let mut people = self.graph.principals.clone();
        people.extend(self.graph.subject.clone());
        for id in way.links.iter().flat_map(|link| [&link.delegator_id, &link.delegate_id]) {
            if !people.iter().any(|person| person.id == *id && person.active) {
                return Some("delegator_inactive");
            }
        }
        if way.links.len() > 16 {
            return Some("delegation_unknown");
        }
        for (place, link) in way.links.iter().enumerate() {
            let sound = match way.links.get(place + 1) {
                None => link.parent_id.is_none(),
                Some(up) => {
                    link.parent_id.as_ref() == Some(&up.id) && up.delegate_id == link.delegator_id
                }
            };
            if !sound {
                return Some("delegation_unknown");
            }
        }
        None
    }

    fn covered(&self, way: &Way<'a>) -> Option<&'static str> {
        let mut missing = way.nothing;
        for (place, link) in way.links.iter().enumerate() {
            missing |= !any_matches(&link.actions, &self.ask.action);
            missing |= place > 0 && !link.can_delegate;
        }
        missing.then_some("permission_missing")
    }

    fn denied(&self) -> bool {
        let action = &self.ask.action;
        let rows =
            self.graph.uses.iter().filter(|u| !u.row.allowed && in_window(u.row.window, self.at));
        rows.into_iter().any(|uses| match &uses.used {
            Used::Action(pattern) => matches(pattern, action),
            Used::Tool(tool) if self.ask.tool_id.is_some() => {
                self.ask.tool_id.as_ref() == Some(&tool.id)
            }
            Used::Tool(tool) => any_matches(&tool.actions, action),
            Used::Model(model) => any_matches(&model.actions, action),
            Used::ExternalApp(app) => any_matches(&app.actions, action),
            Used::Resource(id) => self.ask.resource_id.as_ref() == Some(id),
            Used::Missing(id) => {
                self.ask.tool_id.as_ref() == Some(id) || self.ask.resource_id.as_ref() == Some(id)
            }
        })
    }

    fn all_bounds(way: &Way<'a>) -> Option<Vec<(&'a str, &'a Bounds)>> {
        let mut all: Vec<_> =
            way.links.iter().map(|link| (link.id.as_str(), &link.bounds)).collect();
        if let Some(uses) = way.uses {
            match &uses.row.constraints {
                Constraints::Bounds(bounds) => all.push((&uses.row.id, bounds)),
                Constraints::Malformed(_) => return None,
            }
        }
        Some(all)
    }

    fn bounded(&self, way: &Way<'a>) -> Option<&'static str> {
        let Some(all) = Self::all_bounds(way) else { return Some("constraint_exceeded") };
        let number =
            |amount: agent_authority::decision::Amount| amount.to_string().parse::<f64>().unwrap();
        let amount = self.amount().filter(|amount| *amount >= 0.0);
        for (holder, bounds) in &all {
            let mut fine = hours_hold(bounds, self.at);
            if let Some(max) = bounds.max_amount {
                fine &= amount.is_some_and(|amount| amount <= number(max));
            }
            if let Some(currency) = &bounds.currency {
                fine &= self.text("currency") == Some(currency);
            }
            if !bounds.resource_ids.is_empty() {
                fine &= self
                    .ask
                    .resource_id
                    .as_ref()
                    .is_some_and(|id| bounds.resource_ids.contains(id));
            }
            if !bounds.workspace_ids.is_empty() {
                fine &= self
                    .ask
                    .workspace_id
                    .as_ref()
                    .is_some_and(|id| bounds.workspace_ids.contains(id));
            }
            if let Some(max) = bounds.max_uses {
                let used = self.used(holder, "uses", max.window_seconds);
                fine &= used.is_some_and(|used| used < i64::from(max.count));
            }
            if let Some(max) = bounds.max_total_amount {
                let used = self.used(holder, "amount", max.window_seconds);
                #[expect(clippy::cast_precision_loss, reason = "small numbers")]
                let room = used.zip(amount).is_some_and(|(used, amount)| {
                    used as f64 / 10_000.0 + amount <= number(max.amount)
                });
                fine &= room;
            }
            if !fine {
                return Some("constraint_exceeded");
            }
        }
        let tier = self.declared(way).tier;
        for ceiling in all.iter().filter_map(|(_, bounds)| bounds.max_risk_tier) {
            if tier.is_none_or(|tier| tier > tier_number(ceiling.word())) {
                return Some("risk_exceeds_delegation");
            }
        }
        None
    }

    fn used(&self, holder: &str, counts: &str, window: u32) -> Option<i64> {
        let start =
            (window > 0).then(|| self.at.timestamp() / i64::from(window) * i64::from(window))?;
        let (key, used) = self.facts.spent.0.iter().find(|(key, _)| {
            let kind = match key.counts {
                Counts::Uses => "uses",
                Counts::Amount => "amount",
            };
            key.holder_id == holder && kind == counts && key.window_seconds == window
        })?;
        (key.window_start == start).then_some(*used)
    }

    fn jurisdiction(&self, way: &Way<'a>) -> Option<&'static str> {
        let mut lists: Vec<_> =
            Self::all_bounds(way).unwrap().iter().map(|(_, b)| b.jurisdictions.clone()).collect();
        lists.extend(self.graph.purpose.iter().map(|purpose| purpose.jurisdictions.clone()));
        for list in lists.iter().filter(|list| !list.is_empty()) {
            let here = self.text("jurisdiction").unwrap_or("nowhere");
            if !list.iter().any(|code| code == here) {
                return Some("jurisdiction_unsupported");
            }
        }
        None
    }

    fn acts_in(&self, id: &str) -> bool {
        self.graph.acts_in.iter().any(|row| {
            let allowed = row.allowed_actions.clone().unwrap_or_else(|| vec![Pattern::All]);
            row.workspace_id == id
                && in_window(row.window, self.at)
                && any_matches(&allowed, &self.ask.action)
        })
    }

    fn reached(&self) -> bool {
        let Some(project) = self.graph.project.as_ref().filter(|project| project.live) else {
            return false;
        };
        let mut reach = project.visible_in_workspaces.clone();
        reach.extend(project.workspace_id.clone());
        if let Some(named) = &self.ask.workspace_id {
            reach.retain(|id| id == named);
        }
        reach.iter().any(|id| self.acts_in(id))
    }

    fn granted(&self, thing: &str, way: &Way<'a>) -> bool {
        let level = |word: &str| {
            ["read", "write", "execute", "admin", "owner"].iter().position(|w| *w == word).unwrap()
        };
        let needed = match self.tool(way).and_then(|tool| tool.access_level) {
            Some(access) => level(access.word()),
            None => match self.declared(way).effect {
                Some(0) => level("read"),
                Some(1) => level("write"),
                _ => level("execute"),
            },
        };
        let mut principals = vec![self.ask.subject.clone()];
        principals.extend(way.links.iter().map(|link| link.delegator_id.clone()));
        let memberships = self.graph.memberships.iter().filter(|m| in_window(m.window, self.at));
        let teams: Vec<_> = memberships.map(|row| row.team_id.clone()).collect();
        self.graph.grants.iter().any(|grant| {
            let who = if grant.grantee_kind == "team" { &teams } else { &principals };
            grant.resource_id == thing
                && level(grant.access_level.word()) >= needed
                && who.contains(&grant.grantee_id)
        })
    }

    /// The tool named, or else the one that gives the authority.
    fn tool(&self, way: &Way<'a>) -> Option<&'a Tool> {
        if self.ask.tool_id.is_some() {
            return self.graph.tool.as_deref();
        }
        match &way.uses?.used {
            Used::Tool(tool) => Some(tool),
            _ => None,
        }
    }

    fn purpose_refused(&self) -> bool {
        let Some(purpose) = &self.graph.purpose else { return false };
        let class = self.graph.subject.as_ref().map(|subject| subject.class);
        !purpose.active
            || !in_window(purpose.window, self.at)
            || !any_matches(&purpose.allowed_actions, &self.ask.action)
            || (!purpose.principal_classes.is_empty()
                && !purpose.principal_classes.iter().any(|own| Some(*own) == class))
    }
}

/// What is declared, as numbers that rise with the risk.
#[derive(Default)]
struct Declared {
    any: bool,
    effect: Option<usize>,
    reversibility: Option<usize>,
    rollback: Option<bool>,
    tier: Option<usize>,
    mode: Option<&'static str>,
}

fn tier_number(word: &str) -> usize {
    let words = ["minimal", "limited", "high", "unacceptable", "prohibited"];
    words.iter().position(|w| *w == word).unwrap()
}

fn effect_number(word: &str) -> usize {
    let words = [
        "informational",
        "digital_state_change",
        "financial",
        "physical_actuation",
        "safety_critical",
    ];
    words.iter().position(|w| *w == word).unwrap()
}

fn oversight_number(word: &str) -> usize {
    let words = ["none", "single_approver", "two_person", "two_person_with_legal", "prohibited"];
    words.iter().position(|w| *w == word).unwrap()
}

fn mode_number(word: &str) -> usize {
    match word {
        "auto" | "none" => 0,
        "delegated" => 1,
        other => oversight_number(other),
    }
}

impl<'a> World<'a> {
    fn declared(&self, way: &Way<'a>) -> Declared {
        let tool = self.tool(way);
        let mut all = Declared::default();
        let declarations = [self.ask.action_declaration, tool.and_then(|t| t.action_declaration)];
        for declaration in declarations.into_iter().flatten() {
            let effect = declaration.effect_class.map(|v| effect_number(v.word()));
            let words = ["reversible", "compensatable", "irreversible"];
            let reversibility = declaration.reversibility;
            let reversibility =
                reversibility.map(|v| words.iter().position(|w| *w == v.word()).unwrap());
            all.effect = all.effect.max(effect);
            all.reversibility = all.reversibility.max(reversibility);
            if let Some(rollback) = declaration.rollback_available {
                all.rollback = Some(rollback && all.rollback != Some(false));
            }
        }
        let classified =
            [self.ask.action_risk_classification, tool.and_then(|t| t.action_risk_classification)];
        for classification in classified.into_iter().flatten() {
            let tier = classification.risk_tier.map(|v| tier_number(v.word()));
            all.tier = all.tier.max(tier);
            if let Some(mode) = classification.required_oversight_mode.map(OversightMode::word) {
                let above = all.mode.is_none_or(|known| mode_number(mode) > mode_number(known));
                all.mode = if above { Some(mode) } else { all.mode };
            }
        }
        let mut models: Vec<&Model> = self.graph.model.iter().map(|model| &**model).collect();
        if let Some(Used::Model(model)) = way.uses.map(|uses| &uses.used) {
            models.push(model);
        }
        for tier in models.iter().filter_map(|model| model.risk_tier) {
            all.tier = all.tier.max(Some(tier_number(tier.word())));
        }
        all.any = all.effect.is_some()
            || all.reversibility.is_some()
            || all.rollback.is_some()
            || all.tier.is_some()
            || all.mode.is_some();
        all
    }

    fn least_oversight(&self, way: &Way<'a>) -> usize {
        let declared = self.declared(way);
        let mut least = 0;
        if declared.any {
            let tier = declared.tier.unwrap_or(1);
            let effect = declared.effect.unwrap_or(1);
            let column = match (declared.rollback, declared.reversibility) {
                (Some(true), _) | (_, Some(0)) => 0,
                (_, Some(1)) => 1,
                _ => 2,
            };
            let money = effect >= 2;
            least = match (tier, column) {
                (3 | 4, _) => 4,
                (0, 0 | 1) | (1, 0) => 0,
                (0, _) | (1, 1) => usize::from(money),
                (1, _) => usize::from(effect >= 1),
                (_, 0) => 1,
                (_, 1) => 1 + usize::from(money),
                _ => 2 + usize::from(effect == 4),
            };
            least = least.max(declared.mode.map_or(0, mode_number));
            let undoing = |json: Value| match json.as_str() {
                Some("undone") => 0,
                Some("compensated") => 1,
                _ => 2,
            };
            for rule in self.graph.tenant.iter().flat_map(|tenant| &tenant.gate) {
                if tier_number(rule.risk_tier.word()) <= tier
                    && effect_number(rule.effect_class.word()) <= effect
                    && undoing(serde_json::to_value(rule.undoing).unwrap()) <= column
                {
                    least = least.max(oversight_number(rule.oversight.word()));
                }
            }
        }
        let unsigned =
            |link: &&Delegation| link.needs_standing_approval && link.standing.is_empty();
        if way.links.iter().any(unsigned) {
            least = least.max(1);
        }
        least
    }

    fn rules(&self, way: &Way<'a>) -> Answer {
        // Each part: refusals, holds (code, people, legal, whether an approval meets it).
        let mut obligations = vec!["audit.emit".to_owned()];
        let mut stops = vec!["actor.stop_signal".to_owned()];
        if !way.links.is_empty() {
            stops.push("delegation.revoked".to_owned());
        }
        let mut denials = vec![];
        let mut holds: Vec<(&'static str, u32, bool, bool)> = vec![];
        let mut heard = self.policies(way);
        heard.sort();
        for (_, _, _, number, outcome) in heard {
            match outcome {
                None => denials.push("rule_error".to_owned()),
                Some(false) => {}
                Some(true) => {
                    let said = says(number);
                    match said.effect {
                        "deny" => denials.push(said.code.to_owned()),
                        "hold" => holds.push((said.code, said.people, false, true)),
                        _ => {}
                    }
                    obligations.extend(said.obligations.iter().map(|text| (*text).to_owned()));
                    stops.extend(said.stops.iter().map(|text| (*text).to_owned()));
                }
            }
        }
        for effect in self.reality() {
            match effect {
                "continue_with_warning" => obligations.push("reality.warn".to_owned()),
                "require_revalidation" => {
                    holds.push(("reality_revalidation_required", 0, false, false));
                }
                "require_human_review" => holds.push(("reality_review_required", 1, false, true)),
                "quarantine" | "deny" => denials.push("reality_decoupled".to_owned()),
                _ => {}
            }
        }
        // A hold for want of people stands after one that people cannot meet.
        holds.sort_by_key(|(code, ..)| match *code {
            "reality_revalidation_required" => 1,
            "reality_review_required" => 2,
            _ => 0,
        });
        let least = self.least_oversight(way);
        let undeclared = !self.declared(way).any;
        if least == 4 {
            denials.push("risk_prohibited".to_owned());
        } else if undeclared && self.graph.tenant.as_ref().unwrap().require_declaration {
            denials.push("declaration_required".to_owned());
        } else if least > 0 && !Self::standing(way, least) {
            let people = if least == 1 { 1 } else { 2 };
            holds.push(("oversight_required", people, least == 3, true));
        }
        if let Some(code) = denials.first() {
            return deny(code.clone());
        }
        let people = holds.iter().map(|hold| hold.1).max().unwrap_or(0);
        let legal = holds.iter().any(|hold| hold.2);
        if self.approved(people, legal) {
            holds.retain(|hold| !hold.3);
        }
        if let Some((code, ..)) = holds.first() {
            let unmet = holds.iter().any(|hold| hold.3);
            let approvals = (unmet && people > 0).then_some((people, legal));
            return Answer { decision: "require_approval", approvals, ..deny(*code) };
        }
        Answer {
            decision: "allow_with_constraints",
            reason_code: "permission_granted".to_owned(),
            obligations: once(obligations),
            stop_conditions: once(stops),
            approvals: None,
        }
    }

    fn enough(given: &[Signature], people: u32, legal: bool) -> bool {
        let mut names: Vec<_> = given.iter().map(|signature| &signature.by).collect();
        names.sort();
        names.dedup();
        names.len() >= people as usize && (!legal || given.iter().any(|s| s.role == "legal"))
    }

    fn approved(&self, people: u32, legal: bool) -> bool {
        let (Some(id), Some(approval)) = (&self.ask.approval_id, &self.facts.approval) else {
            return false;
        };
        approval.id == *id
            && approval.state.word() == "approved"
            && approval.same_question
            && approval.expires_at > self.at
            && Self::enough(&approval.given, people, legal)
    }

    fn standing(way: &Way<'a>, least: usize) -> bool {
        let unsigned =
            way.links.iter().any(|link| link.needs_standing_approval && link.standing.is_empty());
        let people = if least == 1 { 1 } else { 2 };
        let own = way.links.first();
        !unsigned && own.is_some_and(|link| Self::enough(&link.standing, people, least == 3))
    }

    fn reality(&self) -> Vec<&'static str> {
        let mut effects = vec![];
        for anchor in &self.graph.anchors {
            let profile = match &self.ask.purpose {
                _ if anchor.grounds_profiles.is_empty() => true,
                None => true,
                Some(purpose) => anchor.grounds_profiles.contains(purpose),
            };
            if profile && any_matches(&anchor.grounds_actions, &self.ask.action) {
                effects.push(self.anchor(anchor));
            }
        }
        for drift in &self.graph.drifts {
            let lifted = drift.overridden_until.is_some_and(|until| self.at < until);
            let actor = drift.actor_id.as_ref().is_none_or(|actor| *actor == self.ask.subject);
            let action = drift.action.as_ref().is_none_or(|own| matches(own, &self.ask.action));
            if !lifted && actor && action {
                effects.push(drift.effect.word());
            }
        }
        effects
    }

    fn anchor(&self, anchor: &Anchor) -> &'static str {
        if anchor.overridden_until.is_some_and(|until| self.at < until) {
            return "continue";
        }
        if anchor.unreadable {
            return "require_human_review";
        }
        let contract = anchor.freshness.as_ref();
        let mut stale = "require_revalidation";
        if let Some(effect) = contract.and_then(|c| c.stale_runtime_effect) {
            stale = effect.word();
        }
        let Some(snapshot) = &anchor.newest else {
            let missing = contract.and_then(|c| c.missing_runtime_effect);
            return missing.map_or(stale, RuntimeEffect::word);
        };
        if snapshot.contested {
            return "quarantine";
        }
        let age = (self.at - snapshot.sampled_at).num_milliseconds();
        if age < -60_000 {
            return "require_human_review";
        }
        if snapshot.valid_until.is_some_and(|until| self.at >= until) {
            return stale;
        }
        let Some(contract) = contract else { return "continue" };
        if age > i64::from(contract.max_staleness_seconds) * 1000 {
            return stale;
        }
        match contract.expected_refresh_seconds {
            Some(seconds) if age > i64::from(seconds) * 1000 => "continue_with_warning",
            _ => "continue",
        }
    }

    /// Every statement that applies: its order, its number and how it comes out (none: it errs).
    fn policies(&self, way: &Way<'a>) -> Vec<(&'static str, String, usize, usize, Option<bool>)> {
        let mut heard = vec![];
        for policy in &self.graph.policies {
            let reference = &policy.reference;
            let targets: Vec<_> = reference.applies_to.iter().map(ToString::to_string).collect();
            let applies = targets.is_empty() || targets.iter().any(|t| self.target(t, way));
            if !applies || !in_window(reference.effective, self.at) {
                continue;
            }
            for (place, number) in reference.id.split('-').skip(1).enumerate() {
                let number: usize = number.parse().unwrap();
                let outcome = self.statement(number, way);
                heard.push((says(number).id, reference.id.clone(), place, number, outcome));
            }
        }
        heard
    }

    fn target(&self, target: &str, way: &Way<'a>) -> bool {
        let declared = self.declared(way);
        let Some((class, value)) = target.split_once(':') else { return true };
        let same = |own: Option<&str>| own.is_none_or(|own| own == value);
        match class {
            "action" => matches(&value.parse().unwrap(), &self.ask.action),
            "effect_class" => declared.effect.is_none_or(|own| own == effect_number(value)),
            "risk_tier" => declared.tier.is_none_or(|own| own == tier_number(value)),
            "principal_class" => same(self.graph.subject.as_ref().map(|s| s.class.word())),
            "resource_kind" => same(self.graph.resource.as_ref().map(|r| r.kind.as_str())),
            "purpose" => same(self.ask.purpose.as_deref()),
            "jurisdiction" => same(self.text("jurisdiction")),
            _ => unreachable!(),
        }
    }

    fn statement(&self, number: usize, way: &Way<'a>) -> Option<bool> {
        let declared = self.declared(way);
        let above = |limit: f64| self.amount().map(|amount| amount > limit);
        let action = self.ask.action.as_str();
        Some(match number {
            0 => above(1000.0) == Some(true),
            1 => above(500.0) == Some(true),
            2 => above(2000.0)?,
            3 => action.starts_with("payment.") && self.ask.purpose.as_deref() != Some("payroll"),
            4 => {
                let class = self.graph.subject.as_ref().unwrap().class.word();
                action == "payment.execute" && class == "agent"
            }
            5 => {
                let mut rows = self.graph.memberships.iter();
                rows.any(|row| row.team_id == "team-1" && in_window(row.window, self.at))
            }
            6 => {
                self.ask.resource_id.as_ref()?;
                self.graph.resource.as_ref()?.kind == "bank_account"
            }
            7 => match self.ask.context.get("flagged") {
                None => false,
                Some(Value::Bool(flagged)) => *flagged,
                Some(_) => return None,
            },
            8 => declared.tier == Some(2),
            9 => self.text("jurisdiction")? == "RU",
            10 => way.links.is_empty(),
            11 => declared.rollback == Some(false) && declared.effect == Some(2),
            12 => true,
            13 => {
                let scoped = action.starts_with("report.") || action == "email.send";
                scoped && self.ask.resource_id.as_deref() == Some("res-1")
            }
            _ => unreachable!(),
        })
    }
}

struct Said {
    id: &'static str,
    effect: &'static str,
    code: &'static str,
    people: u32,
    obligations: &'static [&'static str],
    stops: &'static [&'static str],
}

fn says(number: usize) -> Said {
    let plain = Said {
        id: "",
        effect: "deny",
        code: "policy_denied",
        people: 0,
        obligations: &[],
        stops: &[],
    };
    let hold = "approval_threshold_breach";
    match number {
        0 => Said { id: "m-0", ..plain },
        1 => Said {
            id: "c-1",
            effect: "hold",
            code: hold,
            people: 2,
            obligations: &["review.after"],
            ..plain
        },
        2 => Said { id: "z-2", code: "constraint_exceeded", ..plain },
        3 => Said { id: "b-3", ..plain },
        4 => Said {
            id: "k-4",
            effect: "permit",
            obligations: &["notify.owner", "log.full"],
            ..plain
        },
        5 => Said { id: "d-5", code: "capability_denied", ..plain },
        6 => Said { id: "y-6", ..plain },
        7 => Said { id: "a-7", effect: "hold", code: hold, people: 1, ..plain },
        8 => {
            let stops = &["budget.exhausted", "actor.stop_signal"];
            Said { id: "h-8", effect: "hold", code: hold, people: 1, stops, ..plain }
        }
        9 => Said { id: "x-9", ..plain },
        10 => Said { id: "e-10", effect: "hold", code: "oversight_required", people: 1, ..plain },
        11 => Said { id: "f-11", code: "risk_prohibited", ..plain },
        12 => Said { id: "g-12", effect: "permit", obligations: &["log.full"], ..plain },
        13 => Said { id: "l-13", ..plain },
        _ => unreachable!(),
    }
}

/// The first of each, with `reality.warn` last.
fn once(list: Vec<String>) -> Vec<String> {
    let mut kept = vec![];
    for text in list {
        if !kept.contains(&text) {
            kept.push(text);
        }
    }
    kept
}
