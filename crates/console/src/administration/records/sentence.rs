//! The result of a hand-made form in a sentence, before the form is sent.

use authority_ids::IdParts;
use authority_presentation::Amount;
use chrono::{NaiveTime, TimeDelta};

use super::{field::Field, layout::WINDOWS};
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
        let each = limit.map(|limit| format!("{limit} each time"));
        let total = self.window("max_total_amount", "amount");
        let total = total.map(|(amount, window)| format!("{} {window}", self.amount(&amount)));
        let amounts: Vec<String> = each.into_iter().chain(total).collect();
        let up_to = if amounts.is_empty() { "" } else { " up to " };
        let uses = self.window("max_uses", "count");
        let uses = uses.map(|(count, window)| format!(", at most {count} times {window}"));
        // A part of another delegation has its delegate as the delegator.
        let from = match self.text("delegator_id") {
            Some(_) => format!(", on behalf of {}", self.name("delegator_id")),
            None if self.text("parent_id").is_some() => ", under another delegation".to_owned(),
            None => String::new(),
        };
        let parts = [
            format!("{delegate} may run {}", self.list("actions").unwrap_or_default()),
            format!("{up_to}{}", amounts.join(" and ")),
            uses.unwrap_or_default(),
            self.part(", on ", "resource_ids"),
            self.part(", in ", "jurisdictions"),
            self.part(", for ", "purposes"),
            self.day("not_before", ", from "),
            self.until(", until "),
            from,
        ];
        format!("{}.{}", parts.concat(), self.further())
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
        let delegates = if delegates { " It may delegate this to others." } else { "" };
        let others = self.values.iter().filter(|(_, value)| is_set(value));
        let others = others.filter(|(name, _)| !IN_SENTENCE.contains(&name.as_str()));
        let others: Vec<String> = others.map(|(name, _)| name.replace('_', " ")).collect();
        if others.is_empty() {
            return delegates.to_owned();
        }
        format!("{delegates} Also set: {}.", others.join(", "))
    }

    fn purpose(&self) -> String {
        let who = self.list("principal_classes").map_or("Everybody".to_owned(), |classes| {
            format!("Each {}", classes.replace('_', " ").replace(" and ", " or "))
        });
        let (slug, actions) = (self.name("slug"), self.list("allowed_actions").unwrap_or_default());
        let place = self.part(" in ", "jurisdictions");
        format!("{who} may declare {slug} for {actions}{place}{}.", self.until(" until "))
    }

    fn tool(&self) -> String {
        let actions = self.list("actions").unwrap_or_else(|| "no action yet".to_owned());
        let title = self.values.get("presentation").and_then(|shown| shown.get("title"));
        let shown = title
            .and_then(Value::as_str)
            .map_or_else(|| "shows all fields".to_owned(), |title| format!("reads “{title}”"));
        format!("{} performs {actions}. A request for it {shown}.", self.name("name"))
    }

    fn api_key(&self) -> String {
        let (key, scopes) = (self.name("label"), self.list("scopes").unwrap_or_default());
        let agents = self.list("principal_ids");
        let agents =
            agents.map_or("all agents of the tenant".to_owned(), |names| format!("{names} only"));
        let place = self.part(", from ", "ip_allowlist");
        format!("“{key}” may use {scopes} for {agents}{place}{}.", self.until(", until "))
    }

    fn webhook(&self) -> String {
        let types = self.list("event_types");
        let types = types.unwrap_or_else(|| "all events, except those on demand,".to_owned());
        let suites = self.list("signing_suites");
        let suites = suites.unwrap_or_else(|| "standard-webhooks/v1 and rfc9421".to_owned());
        format!("The service sends {types} to {}, signed by {suites}.", self.name("url"))
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

    /// The items of a list: `a, b and c`. `None` if it is empty.
    fn list(&self, member: &str) -> Option<String> {
        let items = self.values.get(member)?.as_array()?;
        let names: Vec<String> =
            items.iter().map(|item| self.called(member, &plain(item))).collect();
        Some(match names.split_last()? {
            (last, []) => last.clone(),
            (last, rest) => format!("{} and {last}", rest.join(", ")),
        })
    }

    fn part(&self, start: &str, member: &str) -> String {
        self.list(member).map(|items| format!("{start}{items}")).unwrap_or_default()
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
            known.map_or_else(|| format!("in {seconds} s"), |(_, words)| (*words).to_owned());
        Some((window.get(limit).map(plain)?, length))
    }

    fn time(&self, member: &str) -> Option<DateTime<Utc>> {
        let time = DateTime::parse_from_rfc3339(&self.text(member)?).ok()?;
        Some(time.to_utc())
    }

    fn day(&self, member: &str, start: &str) -> String {
        let time = self.time(member);
        time.map(|time| format!("{start}{}", time.format("%-d %b %Y"))).unwrap_or_default()
    }

    /// The end: the last day, or the time on that day.
    fn until(&self, start: &str) -> String {
        let Some(end) = self.time("expires_at") else { return String::new() };
        if end.time() == NaiveTime::MIN {
            return format!("{start}{}", (end - TimeDelta::days(1)).format("%-d %b %Y"));
        }
        format!("{start}{}", end.format("%-d %b %Y, %H:%M UTC"))
    }
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
