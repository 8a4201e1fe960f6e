//! One case before the core: the request, the facts and the time, with the look-ups among them.

use chrono::{DateTime, Utc};

use super::{
    facts::{Facts, Gathered, Principal, Purpose, Resource, Tool},
    gate::Effective,
    request::{ActionRiskClassification, Request},
};

#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) request: &'a Request,
    pub(super) facts: &'a Facts,
    pub(super) gathered: &'a Gathered,
    pub(super) at: DateTime<Utc>,
}

/// Facts are matched by id once more, so that a fact about something else is as good as absent.
impl<'a> Case<'a> {
    pub(super) fn new(request: &'a Request, facts: &'a Facts, at: DateTime<Utc>) -> Self {
        Self { request, facts, gathered: &facts.gathered, at }
    }

    pub(super) fn subject(&self) -> Option<&'a Principal> {
        let id = &self.request.subject;
        self.gathered.subject.as_deref().filter(|subject| subject.id == *id)
    }

    pub(super) fn principal_is_active(&self, id: &str) -> bool {
        let mut known = self.gathered.principals.iter().chain(&self.gathered.subject);
        known.any(|principal| principal.id == id && principal.active)
    }

    /// The teams that the subject is in now.
    pub(super) fn teams(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let at = self.at;
        let rows = self.gathered.memberships.iter();
        rows.filter(move |row| row.window.holds(at)).map(|row| row.team_id.as_str())
    }

    pub(super) fn tool(&self) -> Option<&'a Tool> {
        let id = self.request.tool_id.as_ref()?;
        self.gathered.tool.as_deref().filter(|tool| tool.id == *id)
    }

    pub(super) fn resource(&self) -> Option<&'a Resource> {
        let id = self.request.resource_id.as_ref()?;
        self.gathered.resource.as_deref().filter(|resource| resource.id == *id)
    }

    pub(super) fn purpose(&self) -> Option<&'a Purpose> {
        let slug = self.request.purpose.as_ref()?;
        self.gathered.purpose.as_deref().filter(|purpose| purpose.slug == *slug)
    }

    /// What request, named tool and the subject's model declare together.
    pub(super) fn declared(&self) -> Effective {
        let mut declared = Effective::default();
        let request = self.request;
        declared.take(request.action_declaration, request.action_risk_classification);
        if let Some(tool) = self.tool() {
            declared.take(tool.action_declaration, tool.action_risk_classification);
        }
        if let Some(model) = &self.gathered.model {
            let risk_tier = model.risk_tier;
            declared.take(None, Some(ActionRiskClassification { risk_tier, ..<_>::default() }));
        }
        declared
    }
}
