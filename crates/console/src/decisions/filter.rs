//! The filter of decisions. Its members are the query of the list's address.

use authority_decision::Reason;
use authority_ids::{PrincipalId, TenantId};
use authority_model::proto::runtime::ListDecisionsRequest;
use chrono::{NaiveDate, NaiveTime, TimeDelta};

use crate::{
    kit::{
        lists::{Chip, ListAddress},
        prelude::*,
        text::reason,
    },
    texts::decisions::{ALLOWED, DENIED, HELD},
};

/// Outcomes, and their words in the filter.
pub(super) const OUTCOMES: [(&str, &str); 4] =
    [("", t::ALL), ("allow", ALLOWED), ("require_approval", HELD), ("deny", DENIED)];

/// Spans of time, and their words in the filter.
pub(super) const SPANS: [(&str, &str); 5] = [
    ("", t::decisions::ANY_TIME),
    ("1h", t::decisions::LAST_HOUR),
    ("24h", t::decisions::LAST_DAY),
    ("7d", t::decisions::LAST_WEEK),
    ("30d", t::decisions::LAST_MONTH),
];

/// Parameters of the list's page besides its filter.
const OWN: [&str; 2] = ["page", "id"];

/// A person's filter.
pub(super) struct Filter {
    /// The value of each parameter. An empty text matches all.
    members: [(&'static str, String); 10],
    /// Other parameters of the address, as `outcome=refused`. They have no effect on the list.
    pub(super) ignored: Vec<String>,
}

impl Filter {
    pub(super) fn of(query: &Pairs) -> Self {
        let text = |name: &str| query.text(name).trim().to_owned();
        // Finds an entry by its value or by its word.
        let known = |name: &str, list: &[(&str, &str)]| {
            let asked = text(name);
            let is_it = |(value, word): &&(&str, &str)| {
                asked == *value || (!value.is_empty() && word.eq_ignore_ascii_case(&asked))
            };
            list.iter().find(is_it).map(|(value, _)| (*value).to_owned()).unwrap_or_default()
        };
        let date = |name: &str| day(&text(name)).map(|day| day.to_string()).unwrap_or_default();
        let time = |name: &str| Some(text(name)).filter(|text| moment(text).is_some());
        let reason = Some(text("reason")).filter(|code| Reason::from_word(code).is_some());
        let mut filter = Self {
            members: [
                // As it was typed: an id, or an agent's name.
                ("agent", text("agent")),
                ("action", text("action")),
                ("outcome", known("outcome", &OUTCOMES)),
                ("reason", reason.unwrap_or_default()),
                ("span", known("span", &SPANS)),
                // The first and the last day, as `2026-11-24`, in UTC.
                ("from", date("from")),
                ("to", date("to")),
                // The exact beginning and end, in RFC 3339, from links of the overview.
                ("since", time("since").unwrap_or_default()),
                ("until", time("until").unwrap_or_default()),
                // The value of a declared fact, as `document:RE-1`.
                ("fact", text("fact")),
            ],
            ignored: Vec::new(),
        };
        filter.ignored = filter.ignored(query);
        filter
    }

    /// The parameters of the address that no member of the filter has.
    fn ignored(&self, query: &Pairs) -> Vec<String> {
        let is_used = |name: &str| OWN.contains(&name) || !self.get(name).is_empty();
        let given = query.iter().filter(|(name, value)| !value.trim().is_empty() && !is_used(name));
        let given = given.map(|(name, value)| format!("{name}={value}"));
        let action = self.get("action");
        let pattern = action.contains('*').then(|| t::decisions::whole_action(action));
        let days = day(self.get("from")).zip(day(self.get("to"))).filter(|(from, to)| from > to);
        let days = days.map(|(from, to)| t::decisions::days_reversed(from, to));
        given.chain(pattern).chain(days).collect()
    }

    /// The value of a parameter.
    pub(super) fn get(&self, name: &str) -> &str {
        self.members.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// The parameters without an effect, in a sentence.
    pub(super) fn not_filtered(&self) -> Safe<String> {
        t::decisions::not_filtered(t::codes(&self.ignored))
    }

    pub(super) fn is_any(&self) -> bool {
        self.members.iter().all(|(_, value)| value.is_empty())
    }

    /// The address of the list.
    pub(super) fn address(&self) -> ListAddress {
        let members = self.members.iter().map(|(name, value)| (*name, value.as_str()));
        ListAddress::of("/console/decisions", members)
    }

    /// The active filters.
    pub(super) fn chips(&self, now: DateTime<Utc>) -> Vec<Chip> {
        let word = |list: &[(&str, &str)], value: &str| {
            let known = list.iter().find(|(known, _)| *known == value);
            known.map_or(value, |(_, word)| word).to_owned()
        };
        let exact = |value: &str| Moment::read(value, now).map(|at| at.with_seconds());
        self.address().chips(|name, value| match name {
            "agent" => Some(t::agent_named(short(value))),
            "action" => Some(t::action_named(value)),
            "outcome" => Some(word(&OUTCOMES, value)),
            "span" => Some(word(&SPANS, value)),
            "reason" => Some(Some(reason(value)).filter(|r| !r.is_empty()).unwrap_or(value.into())),
            "from" => Some(t::decisions::from(value)),
            "to" => Some(t::decisions::to(value)),
            "since" => Some(t::decisions::from(exact(value)?)),
            "until" => Some(t::decisions::before(exact(value)?)),
            "fact" => Some(t::decisions::fact(value)),
            _ => None,
        })
    }

    /// Returns the latest beginning: of the span, of the first day, or the exact one.
    pub(super) fn since(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let span = match self.get("span") {
            "1h" => Some(TimeDelta::hours(1)),
            "24h" => Some(TimeDelta::hours(24)),
            "7d" => Some(TimeDelta::days(7)),
            "30d" => Some(TimeDelta::days(30)),
            _ => None,
        };
        let since = span.map(|span| now - span).max(day(self.get("from")).map(midnight));
        since.max(moment(self.get("since")))
    }

    /// The earlier end: of the last day, or the exact one.
    fn until(&self) -> Option<DateTime<Utc>> {
        let last = day(self.get("to")).and_then(|day| day.succ_opt()).map(midnight);
        last.into_iter().chain(moment(self.get("until"))).min()
    }

    /// The agent's id. A name belongs to the selected tenant.
    pub(super) fn subject(&self, view: &View) -> Option<String> {
        let agent = self.get("agent");
        match view.tenant() {
            _ if agent.is_empty() => None,
            Some(tenant) if !agent.contains(':') => {
                let id = PrincipalId::agent(tenant.slug(), agent);
                Some(id.map_or_else(|_| agent.to_owned(), String::from))
            }
            _ => Some(agent.to_owned()),
        }
    }

    pub(super) fn request(&self, view: &View) -> ListDecisionsRequest {
        let given = |name: &str| Some(self.get(name).to_owned()).filter(|text| !text.is_empty());
        let subject = self.subject(view);
        // For an owner who sees all tenants, the agent's id determines the tenant.
        let named = || {
            let agent = PrincipalId::parse(subject.as_deref()?).ok()?;
            view.caller.is_owner().then(|| TenantId::of(&agent).to_string())
        };
        let tenant_id = view.shown_tenant().map(String::from).or_else(named);
        ListDecisionsRequest {
            tenant_id,
            subject,
            action: given("action"),
            decision: given("outcome"),
            reason_code: given("reason"),
            since: self.since(view.now).map(Into::into),
            until: self.until().map(Into::into),
            fact: given("fact"),
            ..ListDecisionsRequest::default()
        }
    }
}

fn day(text: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()
}

fn moment(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc())
}

fn midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(query: &str) -> Filter {
        Filter::of(&Pairs::read(query.as_bytes()))
    }

    #[test]
    fn days_are_whole_and_in_utc() {
        let at = |text: &str| Some(text.parse::<DateTime<Utc>>().unwrap());
        let now = at("2026-11-24T10:00:00Z").unwrap();
        let days = filter("from=2026-03-01&to=2026-03-31");
        assert_eq!(days.since(now), at("2026-03-01T00:00:00Z"));
        assert_eq!(days.until(), at("2026-04-01T00:00:00Z"));
        assert_eq!(days.address().query(), "from=2026-03-01&to=2026-03-31");
        // If both a span and a day are given, the later beginning counts.
        assert_eq!(filter("span=24h&from=2026-03-01").since(now), at("2026-11-23T10:00:00Z"));
        assert_eq!(filter("span=24h&from=2026-11-24").since(now), at("2026-11-24T00:00:00Z"));
        // Exact times, as the overview's links have.
        let exact = "since=2026-11-24T09%3A00%3A00Z&until=2026-11-24T09%3A30%3A00.250Z";
        assert_eq!(filter(exact).since(now), at("2026-11-24T09:00:00Z"));
        assert_eq!(filter(exact).until(), at("2026-11-24T09:30:00.250Z"));
        assert_eq!(filter(exact).address().query(), exact);
        let both = filter(&format!("{exact}&span=30d&to=2026-11-23"));
        assert_eq!(both.since(now), at("2026-11-24T09:00:00Z"));
        assert_eq!(both.until(), at("2026-11-24T00:00:00Z"));
        for none in ["", "from=&to=", "from=soon&to=2026-13-01", "from=2026-03-01&from=2026-03-02"]
        {
            let filter = filter(none);
            assert!(filter.is_any() && filter.since(now).is_none(), "{none}");
            assert!(filter.until().is_none(), "{none}");
        }
    }

    #[test]
    fn what_a_list_is_not_filtered_by_is_named() {
        assert_eq!(filter("outcome=denied&page=2&agent=").address().query(), "outcome=deny");
        assert_eq!(filter("outcome=Held").get("outcome"), "require_approval");
        for (query, ignored) in [
            ("outcome=deny&page=2&agent=", &[][..]),
            ("outcome=refused&span=2h", &["outcome=refused", "span=2h"]),
            ("reason=foo", &["reason=foo"]),
            ("action=payment.*", &["the pattern action=payment.*: name one action, whole"]),
            ("from=2026-03-02&to=2026-03-01", &["from=2026-03-02, which is after to=2026-03-01"]),
            ("from=soon&subject=bot", &["from=soon", "subject=bot"]),
            ("since=24h", &["since=24h"]),
            ("from=2026-03-01&from=2026-03-02", &["from=2026-03-01", "from=2026-03-02"]),
        ] {
            assert_eq!(filter(query).ignored, ignored, "{query}");
        }
    }
}
