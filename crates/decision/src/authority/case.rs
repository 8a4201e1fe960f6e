//! The request, the facts and the time of a decision, with look-ups.

use authority_ids::PrincipalRef;
use chrono::{DateTime, FixedOffset, Utc};

use crate::{
    facts::{
        gathered::{Facts, Gathered},
        records::{Principal, Purpose, Resource, Tool},
        terms::Terms,
        time_zone,
    },
    levels::RiskTier,
    request::draft::Request,
};

#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) request: &'a Request,
    pub(crate) facts: &'a Facts,
    pub(crate) gathered: &'a Gathered,
    pub(crate) at: DateTime<Utc>,
    /// The time of the request. It applies to permitted hours, a policy's `now` and `local`, and the
    /// expiry of a cited approval. It differs from `at` only if a permission is judged again.
    pub(crate) asked_at: DateTime<Utc>,
}

/// Facts are matched by id again: a fact about another object counts as absent.
impl<'a> Case<'a> {
    pub(crate) fn new(request: &'a Request, facts: &'a Facts, at: DateTime<Utc>) -> Self {
        Self { request, facts, gathered: &facts.gathered, at, asked_at: at }
    }

    pub(crate) fn subject(&self) -> Option<&'a Principal> {
        let id = &self.request.subject;
        self.gathered.subject.as_deref().filter(|subject| subject.id == *id)
    }

    /// Returns the id of the delegation that renewed `id`, if the request names `id`. Otherwise
    /// returns `id`.
    pub(crate) fn successor_of<'i>(&self, id: &'i str) -> &'i str
    where
        'a: 'i,
    {
        let is_named = self.request.delegation_id.as_deref() == Some(id);
        self.gathered.successor_id.as_deref().filter(|_| is_named).unwrap_or(id)
    }

    pub(crate) fn principal_is_active(&self, id: &PrincipalRef) -> bool {
        let mut known = self.gathered.principals.iter().chain(&self.gathered.subject);
        known.any(|principal| principal.id == *id && principal.active)
    }

    /// Returns the time of the request in the tenant's time zone.
    ///
    /// Returns `None` if the zone's offset is not in the facts. A tenant without a zone uses UTC.
    pub(crate) fn local_time(&self) -> Option<DateTime<FixedOffset>> {
        let tenant = self.gathered.tenant.as_deref();
        let offset = match tenant.and_then(|tenant| tenant.time_zone.as_deref()) {
            None => FixedOffset::east_opt(0),
            Some(name) => time_zone::named(&self.facts.zones, name)?.at(self.asked_at),
        };
        Some(self.asked_at.with_timezone(&offset?))
    }

    /// Returns the current teams of the subject.
    pub(crate) fn teams(&self) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
        let at = self.at;
        let rows = self.gathered.memberships.iter();
        rows.filter(move |row| row.window.holds(at)).map(|row| row.team_id.as_str())
    }

    pub(crate) fn tool(&self) -> Option<&'a Tool> {
        let id = self.request.tool_id.as_ref()?;
        self.gathered.tool.as_deref().filter(|tool| tool.id == *id)
    }

    pub(crate) fn resource(&self) -> Option<&'a Resource> {
        let id = self.request.resource_id.as_ref()?;
        self.gathered.resource.as_deref().filter(|resource| resource.id == *id)
    }

    pub(crate) fn purpose(&self) -> Option<&'a Purpose> {
        let slug = self.request.purpose.as_ref()?;
        self.gathered.purpose.as_deref().filter(|purpose| purpose.slug == *slug)
    }

    /// Returns the terms of the named tool, or the strictest terms of all tools that perform the
    /// action, regardless of the subject's authority.
    pub(crate) fn terms(&self) -> Terms<'a> {
        if self.request.tool_id.is_some() {
            return self.tool().map_or(Terms::Nobody, Terms::Of);
        }
        self.gathered.joined_terms.as_deref().map_or(Terms::Nobody, Terms::Joined)
    }

    /// Returns the risk tier of the subject's model.
    pub(crate) fn model_tier(&self) -> Option<RiskTier> {
        self.gathered.model.as_ref().and_then(|model| model.risk_tier)
    }
}
