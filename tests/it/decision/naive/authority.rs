//! The naive evaluator's authority stage.

use authority_decision::request;

use super::{gate::tier_number, *};

impl<'a> World<'a> {
    pub(super) fn in_force(&self, way: &Way<'a>) -> Option<&'static str> {
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

    pub(super) fn covered(&self, way: &Way<'a>) -> Option<&'static str> {
        let mut missing = way.nothing;
        for (place, link) in way.links.iter().enumerate() {
            missing |= !any_matches(&link.actions, &self.ask.action);
            missing |= place > 0 && !link.can_delegate;
        }
        missing.then_some("permission_missing")
    }

    pub(super) fn denied(&self, way: &Way<'a>) -> bool {
        let action = &self.ask.action;
        let mut rows: Vec<&Uses> = self.graph.uses.iter().filter(|u| !u.row.allowed).collect();
        for other in &self.graph.chain_denials {
            if self.actors(way).contains(&&other.principal_id) {
                rows.push(&other.denial);
            }
        }
        rows.retain(|uses| in_window(uses.row.window, self.at));
        rows.into_iter().any(|uses| match &uses.used {
            Used::Action(pattern) => matches(pattern, action),
            Used::Tool(tool) if self.ask.tool_id.is_some() => {
                self.ask.tool_id.as_ref() == Some(&tool.id)
            }
            Used::Tool(tool) => any_matches(&tool.actions, action),
            Used::Model(model) => any_matches(&model.actions, action),
            Used::ExternalApp(app) => any_matches(&app.actions, action),
            Used::Resource(id) => self.ask.resource_id.as_ref() == Some(id),
            Used::Missing(_) => true,
        })
    }

    pub(super) fn all_bounds(way: &Way<'a>) -> Option<Vec<(&'a str, &'a Bounds)>> {
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

    pub(super) fn bounded(&self, way: &Way<'a>) -> Option<&'static str> {
        let Some(all) = Self::all_bounds(way) else { return Some("constraint_exceeded") };
        let number =
            |amount: authority_decision::Amount| amount.to_string().parse::<f64>().unwrap();
        let amount = self.amount().filter(|amount| *amount >= 0.0);
        if self.amount().is_some_and(|amount| amount < 0.0) {
            return Some("constraint_exceeded");
        }
        for (holder, bounds) in &all {
            let mut fine = hours_hold(bounds, self.facts, self.at);
            if let Some(max) = bounds.max_amount {
                fine &= amount.is_some_and(|amount| amount <= number(max));
            }
            if let Some(currency) = &bounds.currency {
                fine &= self.text("currency") == Some(currency);
            }
            if !bounds.resource_ids.is_empty() {
                let (thing, project) = (&self.ask.resource_id, &self.ask.project_id);
                fine &= thing.is_some() || project.is_some();
                for id in [thing, project].into_iter().flatten() {
                    fine &= bounds.resource_ids.contains(id);
                }
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
        for ceiling in all.iter().filter_map(|(_, bounds)| bounds.max_risk_tier) {
            let above = |tier: Option<usize>| tier.is_none_or(|t| t > tier_number(ceiling.word()));
            if self.each(way).iter().any(|declared| above(declared.tier)) {
                return Some("risk_exceeds_delegation");
            }
        }
        None
    }

    pub(super) fn used(&self, holder: &str, counts: &str, window: u32) -> Option<i64> {
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

    pub(super) fn jurisdiction(&self, way: &Way<'a>) -> Option<&'static str> {
        let mut lists: Vec<_> =
            Self::all_bounds(way).unwrap().iter().map(|(_, b)| b.jurisdictions.clone()).collect();
        lists.extend(self.graph.purpose.iter().map(|purpose| purpose.jurisdictions.clone()));
        for list in lists.iter().filter(|list| !list.is_empty()) {
            let here = self.text("jurisdiction").unwrap_or("nowhere");
            if !list.iter().any(|code| here == code || here.starts_with(&format!("{code}-"))) {
                return Some("jurisdiction_unsupported");
            }
        }
        None
    }

    pub(super) fn acts_in(&self, id: &str) -> bool {
        self.graph.acts_in.iter().any(|row| {
            let allowed = row.allowed_actions.clone().unwrap_or_else(|| vec![Pattern::All]);
            row.workspace_id == id
                && in_window(row.window, self.at)
                && any_matches(&allowed, &self.ask.action)
        })
    }

    pub(super) fn reached(&self) -> bool {
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

    pub(super) fn granted(&self, thing: &str, way: &Way<'a>) -> bool {
        let level = |word: &str| {
            ["read", "write", "execute", "admin", "owner"].iter().position(|w| *w == word).unwrap()
        };
        let for_effect = |effect: Option<EffectClass>| match effect.map(EffectClass::word) {
            Some("informational") => level("read"),
            Some("digital_state_change") => level("write"),
            _ => level("execute"),
        };
        let effect = |own: Option<request::ActionDeclaration>| own.and_then(|d| d.effect_class);
        let mut needs = vec![];
        for tool in self.binding(way) {
            let own = tool.access_level.map(|access| level(access.word()));
            needs.push(own.unwrap_or_else(|| for_effect(effect(tool.action_declaration))));
        }
        if needs.is_empty() {
            needs.push(level("execute"));
        }
        if let Some(own) = effect(self.ask.action_declaration) {
            needs.push(for_effect(Some(own)));
        }
        let needed = needs.into_iter().max().unwrap();
        let mut principals = vec![self.ask.subject.clone()];
        principals.extend(way.links.iter().map(|link| link.delegator_id.clone()));
        let memberships = self.graph.memberships.iter().filter(|m| in_window(m.window, self.at));
        let teams: Vec<_> = memberships.map(|row| row.team_id.clone()).collect();
        self.graph.grants.iter().any(|grant| {
            let is_grantee = if grant.grantee_kind == "team" {
                teams.iter().any(|id| *id == *grant.grantee_id)
            } else {
                principals.iter().any(|id| *id == *grant.grantee_id)
            };
            grant.resource_id == thing && level(grant.access_level.word()) >= needed && is_grantee
        })
    }

    /// Returns the request's single tool: the tool that the request names, otherwise the tool of the
    /// authority. `None` if there is neither. `Some(None)` if the named tool does not exist.
    #[expect(clippy::option_option, reason = "an unknown tool differs from no tool")]
    pub(super) fn one_tool(&self, way: &Way<'a>) -> Option<Option<&'a Tool>> {
        if let Some(id) = &self.ask.tool_id {
            return Some(self.tools.iter().find(|tool| tool.id == *id).map(|tool| &**tool));
        }
        match &way.uses?.used {
            Used::Tool(tool) => Some(Some(tool)),
            _ => None,
        }
    }

    /// Returns all active tools that perform the action.
    pub(super) fn performing(&self) -> Vec<&'a Arc<Tool>> {
        let all = self.tools.iter();
        all.filter(|tool| tool.live && any_matches(&tool.actions, &self.ask.action)).collect()
    }

    /// Returns the tools that set terms for the request: the single tool, or all active tools that
    /// perform the action.
    pub(super) fn binding(&self, way: &Way<'a>) -> Vec<&'a Tool> {
        if let Some(one) = self.one_tool(way) {
            return one.into_iter().collect();
        }
        self.performing().into_iter().map(|tool| &**tool).collect()
    }

    pub(super) fn purpose_refused(&self) -> bool {
        let Some(purpose) = &self.graph.purpose else { return false };
        let class = self.graph.subject.as_ref().map(|subject| subject.class);
        !purpose.active
            || !in_window(purpose.window, self.at)
            || !any_matches(&purpose.allowed_actions, &self.ask.action)
            || (!purpose.principal_classes.is_empty()
                && !purpose.principal_classes.iter().any(|own| Some(*own) == class))
    }
}
