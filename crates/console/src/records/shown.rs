//! A record as a page shows it: every member, none left out.

use chrono::{DateTime, Utc};
use prost_reflect::{DynamicMessage, ReflectMessage};
use serde_json::{Map, Value};

use crate::{
    kinds::{Input, Kind, Member, Written, json, plain, text},
    show::{Argument, Moment, arguments, short},
    view::View,
};

/// A member with its value.
pub(crate) struct Shown {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) about: String,
    pub(crate) datum: Datum,
}

/// A value, for people.
pub(crate) enum Datum {
    Text(Argument),
    Link(Link),
    Moment(Moment),
    Texts(Vec<Link>),
    Members(Vec<Argument>),
}

/// A text, and the page of what it names.
pub(crate) struct Link {
    pub(crate) text: String,
    pub(crate) address: Option<String>,
}

/// What a member is.
pub(crate) struct Meaning {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) about: String,
}

impl Meaning {
    fn of(member: &Member) -> Self {
        let Member { name, label, about, .. } = member.clone();
        Self { name, label, about }
    }
}

/// All of a record.
pub(crate) struct RecordView {
    /// What people write.
    pub(crate) written: Vec<Shown>,
    /// What the service writes.
    pub(crate) kept: Vec<Shown>,
    /// The members without a value.
    pub(crate) empty: Vec<Meaning>,
    /// Of each member, in the order of the proto.
    pub(crate) meanings: Vec<Meaning>,
    pub(crate) json: String,
}

impl RecordView {
    pub(crate) fn of(view: &View, record: &DynamicMessage) -> Self {
        let members = json(record);
        let all = Member::all(&record.descriptor());
        let mut found = Self {
            written: Vec::new(),
            kept: Vec::new(),
            empty: Vec::new(),
            meanings: all.iter().map(Meaning::of).collect(),
            json: pretty(&members),
        };
        for member in all {
            let kept = member.written == Written::ByTheService;
            match Shown::of(view, &member, members.get(&member.name)) {
                None => found.empty.push(Meaning::of(&member)),
                Some(shown) if kept => found.kept.push(shown),
                Some(shown) => found.written.push(shown),
            }
        }
        found
    }
}

fn pretty(members: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(members).unwrap_or_default()
}

impl Shown {
    /// `None` if there is nothing to show.
    pub(crate) fn of(view: &View, member: &Member, value: Option<&Value>) -> Option<Self> {
        let datum = match (value, &member.input) {
            (None, Input::Flag) => Datum::Text(Argument::new("", "no".to_owned())),
            (None, Input::Number) => Datum::Text(Argument::new("", "0".to_owned())),
            (value, _) => datum(view, member, value?)?,
        };
        let (name, label, about) =
            (member.name.clone(), member.label.clone(), member.about.clone());
        Some(Self { name, label, about, datum })
    }
}

fn datum(view: &View, member: &Member, value: &Value) -> Option<Datum> {
    Some(match value {
        Value::Null => return None,
        Value::String(text) if text.is_empty() => return None,
        Value::Array(items) if items.is_empty() => return None,
        Value::Object(members) if members.is_empty() => return None,
        Value::String(text) if member.input == Input::Time => match moment(text, view.now) {
            Some(moment) => Datum::Moment(moment),
            None => Datum::Text(Argument::new("", text.clone())),
        },
        Value::String(text) => match address(view, text).filter(|_| member.name != "id") {
            Some(address) => Datum::Link(Link { text: text.clone(), address: Some(address) }),
            None => Datum::Text(Argument::new("", text.clone())),
        },
        Value::Bool(yes) => {
            Datum::Text(Argument::new("", if *yes { "yes" } else { "no" }.to_owned()))
        }
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            let link = |item: &Value| {
                let text = plain(item);
                Link { address: address(view, &text), text }
            };
            Datum::Texts(items.iter().map(link).collect())
        }
        Value::Array(_) => {
            Datum::Members(arguments(&Map::from_iter([(member.name.clone(), value.clone())])))
        }
        Value::Object(members) => Datum::Members(arguments(members)),
        Value::Number(number) => Datum::Text(Argument::new("", number.to_string())),
    })
}

fn moment(text: &str, now: DateTime<Utc>) -> Option<Moment> {
    let at = DateTime::parse_from_rfc3339(text).ok()?;
    Some(Moment::of(at.to_utc(), now))
}

/// The page of what an id names, if there is one for this person.
pub(crate) fn address(view: &View, id: &str) -> Option<String> {
    let kind = Kind::of_id(id)?;
    (kind.has_ids() && view.may(&kind.get.rpc)).then(|| kind.address(id))
}

/// What people call a record.
pub(crate) fn title(record: &DynamicMessage) -> String {
    let named = ["display_name", "name", "label", "title", "slug", "kid", "organisation"];
    let named = named.iter().map(|name| text(record, name)).find(|name| !name.is_empty());
    named.unwrap_or_else(|| {
        let members = Member::all(&record.descriptor());
        let telling = members
            .iter()
            .filter(|member| member.required && member.name != "tenant_id")
            .map(|member| text(record, &member.name))
            .filter(|text| !text.is_empty());
        // Of an id, what people know it by; an address or a sentence as it is.
        let known =
            |text: String| if text.starts_with("svc:") { short(&text).to_owned() } else { text };
        let parts: Vec<_> = telling.take(2).map(known).collect();
        if parts.is_empty() { short(&text(record, "id")).to_owned() } else { parts.join(" · ") }
    })
}

/// The word of a record's state; empty if it has none.
pub(crate) fn state(record: &DynamicMessage) -> String {
    let state = text(record, "state");
    if state.is_empty() { text(record, "status") } else { state }
}

/// When a record was made.
pub(crate) fn made(record: &DynamicMessage, now: DateTime<Utc>) -> Option<Moment> {
    moment(json(record).get("created_at")?.as_str()?, now)
}
