//! The filter of decisions, which is the address of their list.

use authority_ids::TenantId;
use authority_model::proto::runtime::ListDecisionsRequest;
use chrono::{DateTime, TimeDelta, Utc};

use crate::{query::Pairs, show::short, view::View};

/// Outcomes, and their words in the filter.
pub(super) const OUTCOMES: [(&str, &str); 4] =
    [("", "All"), ("allow", "Allowed"), ("require_approval", "Held"), ("deny", "Denied")];

/// Spans, and their words in the filter.
pub(super) const SPANS: [(&str, &str); 5] = [
    ("", "Any time"),
    ("1h", "The last hour"),
    ("24h", "The last 24 hours"),
    ("7d", "The last 7 days"),
    ("30d", "The last 30 days"),
];

/// What a person looks for. An empty text is any.
#[derive(Default)]
pub(super) struct Filter {
    /// As it was typed: an id, or an agent's name.
    pub(super) agent: String,
    pub(super) action: String,
    pub(super) outcome: String,
    pub(super) reason: String,
    pub(super) span: String,
}

impl Filter {
    pub(super) fn of(query: &Pairs) -> Self {
        let text = |name: &str| query.text(name).trim().to_owned();
        let known = |name: &str, list: &[(&str, &str)]| {
            let value = text(name);
            if list.iter().any(|(known, _)| *known == value) { value } else { String::new() }
        };
        Self {
            agent: text("agent"),
            action: text("action"),
            outcome: known("outcome", &OUTCOMES),
            reason: text("reason"),
            span: known("span", &SPANS),
        }
    }

    fn members(&self) -> [(&'static str, &str); 5] {
        [
            ("agent", &self.agent),
            ("action", &self.action),
            ("outcome", &self.outcome),
            ("reason", &self.reason),
            ("span", &self.span),
        ]
    }

    pub(super) fn is_any(&self) -> bool {
        self.members().iter().all(|(_, value)| value.is_empty())
    }

    /// The query of the address; `page_token`, where there is one, at its end.
    pub(super) fn query(&self, page_token: Option<&str>) -> String {
        let given = self.members().into_iter().filter(|(_, value)| !value.is_empty());
        let page = page_token.map(|token| ("page", token));
        form_urlencoded::Serializer::new(String::new()).extend_pairs(given.chain(page)).finish()
    }

    pub(super) fn since(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let span = match self.span.as_str() {
            "1h" => TimeDelta::hours(1),
            "24h" => TimeDelta::hours(24),
            "7d" => TimeDelta::days(7),
            "30d" => TimeDelta::days(30),
            _ => return None,
        };
        Some(now - span)
    }

    /// The agent's id: a name is one of the tenant that is shown.
    pub(super) fn subject(&self, view: &View) -> Option<String> {
        let own = view.caller.tenant().map(TenantId::as_str).or(view.shown_tenant());
        match own {
            _ if self.agent.is_empty() => None,
            Some(tenant) if !self.agent.contains(':') => {
                Some(format!("svc:agent:{}:{}", short(tenant), self.agent))
            }
            _ => Some(self.agent.clone()),
        }
    }

    pub(super) fn request(&self, view: &View) -> ListDecisionsRequest {
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        ListDecisionsRequest {
            tenant_id: view.shown_tenant().map(str::to_owned),
            subject: self.subject(view),
            action: given(&self.action),
            decision: given(&self.outcome),
            reason_code: given(&self.reason),
            since: self.since(view.now).map(Into::into),
            ..ListDecisionsRequest::default()
        }
    }
}
