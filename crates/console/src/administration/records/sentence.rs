//! The result of a hand-made form in a sentence, before the form is sent.

use authority_ids::IdParts;
use authority_presentation::Amount;
use chrono::{NaiveTime, TimeDelta};

use super::{depends::listed, field::Field, layout::WINDOWS};
use crate::kit::{kinds::plain, prelude::*};

/// The members of a delegation that its sentence contains, and members without effect on decisions.
const IN_SENTENCE: [&str; 17] = [
    "tenant_id",
    "delegator_id",
    "delegate_id",
    "parent_id",
    "actions",
    "max_amount",
    "currency",
    "max_total_amount",
    "max_uses",
    "resource_ids",
    "jurisdictions",
    "purposes",
    "not_before",
    "expires_at",
    "can_delegate",
    "reason",
    "metadata",
];

/// The members of a form, with the names of the records that they refer to.
pub(crate) struct Sentence<'a> {
    values: &'a Map<String, Value>,
    fields: &'a [Field],
}

impl<'a> Sentence<'a> {
    pub(crate) fn new(values: &'a Map<String, Value>, fields: &'a [Field]) -> Self {
        Self { values, fields }
    }

    /// The sentence of a new record; `None` for a kind without one.
    pub(crate) fn of(&self, kind: &str) -> Option<String> {
        Some(match kind {
            "delegation" => self.delegation(&self.name("delegate_id")),
            "purpose" => self.purpose(),
            "tool" => self.tool(),
            "api_key" => self.api_key(),
            "webhook_endpoint" => self.webhook(),
            _ => return None,
        })
    }

    /// The permissions of a delegation.
    pub(crate) fn delegation(&self, delegate: &str) -> String {
        let limit = self.text("max_amount").map(|amount| self.amount(&amount));
        let each = limit.map(t::records::each_time);
        let total = self.window("max_total_amount", "amount");
        let total =
            total.map(|(amount, window)| t::records::amount_in(self.amount(&amount), window));
        let amounts: Vec<String> = each.into_iter().chain(total).collect();
        let up_to = (!amounts.is_empty()).then(|| t::records::up_to(listed(&amounts)));
        let uses = self.window("max_uses", "count");
        let uses = uses.map(|(count, window)| t::records::at_most(count, window));
        let limits: String = up_to.into_iter().chain(uses).collect();
        // A part of another delegation has its delegate as the delegator.
        let basis = match self.text("delegator_id") {
            Some(_) => t::records::on_behalf_of(self.name("delegator_id")),
            None if self.text("parent_id").is_some() => t::records::UNDER_ANOTHER.to_owned(),
            None => String::new(),
        };
        let scope = [
            self.part(t::records::on_resources, "resource_ids"),
            self.part(t::records::in_places, "jurisdictions"),
            self.part(t::records::for_purposes, "purposes"),
        ];
        let from = self.time("not_before").map(|time| t::records::from_day(day(time)));
        let period: String = from.into_iter().chain(self.until(t::records::until_day)).collect();
        let actions = self.list("actions").unwrap_or_default();
        let (scope, further) = (scope.concat(), self.further());
        t::records::delegation(delegate, actions, limits, scope, period, basis) + &further
    }

    /// The terms of a delegation that its sentence does not contain.
    fn further(&self) -> String {
        let is_set = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            _ => true,
        };
        let delegates = self.values.get("can_delegate").is_some_and(is_set);
        let delegates = if delegates { t::records::MAY_DELEGATE } else { "" };
        let others = self.values.iter().filter(|(_, value)| is_set(value));
        let others = others.filter(|(name, _)| !IN_SENTENCE.contains(&name.as_str()));
        let others: Vec<String> = others.map(|(name, _)| name.replace('_', " ")).collect();
        if others.is_empty() {
            return delegates.to_owned();
        }
        format!("{delegates}{}", t::records::also_set(others.join(", ")))
    }

    fn purpose(&self) -> String {
        let classes = self.items("principal_classes");
        let people = match classes.split_last() {
            None => t::records::EVERYBODY.to_owned(),
            Some((last, rest)) => {
                let classes = if rest.is_empty() {
                    last.clone()
                } else {
                    t::inbox::roles_or(rest.join(", "), last)
                };
                t::records::each(classes.replace('_', " "))
            }
        };
        let (slug, actions) = (self.name("slug"), self.list("allowed_actions").unwrap_or_default());
        let places = self.part(t::records::within, "jurisdictions");
        let end = self.until(t::records::ending).unwrap_or_default();
        t::records::purpose(people, slug, actions, places, end)
    }

    fn tool(&self) -> String {
        let actions = self.list("actions").unwrap_or_else(|| t::records::NO_ACTION.to_owned());
        let title = self.values.get("presentation").and_then(|shown| shown.get("title"));
        match title.and_then(Value::as_str) {
            Some(title) => t::records::tool_titled(self.name("name"), actions, title),
            None => t::records::tool(self.name("name"), actions),
        }
    }

    fn api_key(&self) -> String {
        let (key, scopes) = (self.name("label"), self.list("scopes").unwrap_or_default());
        let agents = self.list("principal_ids");
        let agents = agents.map_or(t::records::ALL_AGENTS.to_owned(), t::records::only);
        let addresses = self.part(t::records::from_addresses, "ip_allowlist");
        let end = self.until(t::records::until_day).unwrap_or_default();
        t::records::api_key(key, scopes, agents, addresses, end)
    }

    fn webhook(&self) -> String {
        let types = self.list("event_types");
        let types = types.unwrap_or_else(|| t::records::ALL_EVENTS.to_owned());
        let suites = self.list("signing_suites");
        let suites = suites.unwrap_or_else(|| t::records::DEFAULT_SUITES.to_owned());
        t::records::webhook(types, self.name("url"), suites)
    }

    fn text(&self, member: &str) -> Option<String> {
        self.values.get(member).map(plain)
    }

    /// The name of the record at this member, or the text.
    fn name(&self, member: &str) -> String {
        self.text(member).map(|text| self.called(member, &text)).unwrap_or_default()
    }

    fn called(&self, member: &str, text: &str) -> String {
        let field = self.fields.iter().find(|field| field.member.name == member);
        let label = field.and_then(|field| field.label(text));
        let is_id = IdParts::begins(text) && member != "event_types";
        match label {
            // An agent is known by the name in its id.
            _ if IdParts::is(text, "agent") => short(text).to_owned(),
            Some(label) if is_id => label.to_owned(),
            _ if is_id => short(text).to_owned(),
            _ => text.to_owned(),
        }
    }

    /// The names of the items of a list.
    fn items(&self, member: &str) -> Vec<String> {
        let items = self.values.get(member).and_then(Value::as_array).into_iter().flatten();
        items.map(|item| self.called(member, &plain(item))).collect()
    }

    /// The items of a list: `a, b and c`. `None` if it is empty.
    fn list(&self, member: &str) -> Option<String> {
        let items = self.items(member);
        (!items.is_empty()).then(|| listed(&items))
    }

    /// The clause with a list; empty without items.
    fn part(&self, clause: fn(String) -> String, member: &str) -> String {
        self.list(member).map(clause).unwrap_or_default()
    }

    /// An amount with the currency of the form. A text that is not an amount stays as it is.
    fn amount(&self, text: &str) -> String {
        let mut context = Map::new();
        let number = serde_json::from_str::<serde_json::Number>(text).ok();
        context.extend(number.map(|number| ("amount".to_owned(), Value::Number(number))));
        context
            .extend(self.values.get("currency").map(|code| ("currency".to_owned(), code.clone())));
        Amount::of(&context).map_or_else(|| text.to_owned(), |amount| amount.plain())
    }

    /// The limit of a window, and its length in words.
    fn window(&self, member: &str, limit: &str) -> Option<(String, String)> {
        let window = self.values.get(member)?.as_object()?;
        let seconds = window.get("window_seconds").map(plain).unwrap_or_default();
        let known = WINDOWS.iter().find(|(length, _)| *length == seconds);
        let length =
            known.map_or_else(|| t::records::in_seconds(seconds), |(_, words)| (*words).to_owned());
        Some((window.get(limit).map(plain)?, length))
    }

    fn time(&self, member: &str) -> Option<DateTime<Utc>> {
        let time = DateTime::parse_from_rfc3339(&self.text(member)?).ok()?;
        Some(time.to_utc())
    }

    /// The clause with the end: the last day, or the time on that day.
    fn until(&self, clause: fn(String) -> String) -> Option<String> {
        let end = self.time("expires_at")?;
        Some(clause(if end.time() == NaiveTime::MIN {
            day(end - TimeDelta::days(1))
        } else {
            end.format("%-d %b %Y, %H:%M UTC").to_string()
        }))
    }
}

fn day(time: DateTime<Utc>) -> String {
    time.format("%-d %b %Y").to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(kind: &str, values: &Value) -> String {
        Sentence::new(values.as_object().unwrap(), &[]).of(kind).unwrap()
    }

    #[test]
    fn the_result_is_one_sentence() {
        let delegation = json!({"delegate_id": "svc:agent:acme:invoice-bot",
            "delegator_id": "svc:ent:acme:principal:01", "actions": ["payment.execute"],
            "max_amount": "5000", "currency": "EUR",
            "max_total_amount": {"amount": "20000", "window_seconds": 86400},
            "jurisdictions": ["DE"], "purposes": ["invoice-settlement"],
            "expires_at": "2027-01-01T00:00:00Z"});
        assert_eq!(
            of("delegation", &delegation),
            "invoice-bot may run payment.execute up to 5 000.00 EUR each time and 20 000.00 EUR a day, in DE, for \
             invoice-settlement, until 31 Dec 2026, on behalf of 01."
        );
        let without = json!({"delegate_id": "svc:agent:acme:a", "actions": ["a", "b", "c"],
            "max_uses": {"count": 3, "window_seconds": 60}, "parent_id": "svc:del:acme:1",
            "can_delegate": true, "not_before": "2030-01-01T00:00:00Z", "max_risk_tier": "minimal"});
        assert_eq!(
            of("delegation", &without),
            "a may run a, b and c, at most 3 times in 60 s, from 1 Jan 2030, under another delegation. It may \
             delegate this to others. Also set: max risk tier."
        );
        let key = json!({"label": "desk", "scopes": ["runtime:read"], "expires_at": "2026-12-31T10:30:00Z"});
        assert_eq!(
            of("api_key", &key),
            "“desk” may use runtime:read for all agents of the tenant, until 31 Dec 2026, 10:30 UTC."
        );
        let tool = json!({"name": "Bank", "actions": ["payment.*"],
            "presentation": {"title": "Pay {amount} to {payee}"}});
        assert_eq!(
            of("tool", &tool),
            "Bank performs payment.*. A request for it reads “Pay {amount} to {payee}”."
        );
        let purpose = json!({"slug": "travel", "allowed_actions": ["book.*"], "principal_classes": ["agent", "human"]});
        assert_eq!(of("purpose", &purpose), "Each agent or human may declare travel for book.*.");
        assert_eq!(
            of("webhook_endpoint", &json!({"url": "https://a.example"})),
            "The service sends all events, except those on demand, to https://a.example, signed by \
             standard-webhooks/v1 and rfc9421."
        );
    }
}
