//! A record as a page shows it: every member, none left out.

use std::collections::HashMap;

use authority_ids::IdParts;
use prost_reflect::{DynamicMessage, ReflectMessage};

use super::call::read;
use crate::kit::{
    kinds::{Input, Kind, Member, Written, json, plain, text},
    names::is_agent,
    prelude::*,
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

/// A text, and the page of the record that it names.
pub(crate) struct Link {
    pub(crate) text: String,
    pub(crate) address: Option<String>,
    /// The name of this record, if it was read.
    pub(crate) name: Option<String>,
}

impl Link {
    pub(super) fn of(view: &View, text: String) -> Self {
        Self { address: address(view, &text), text, name: None }
    }

    /// The words of a sentence. Ids link to their pages.
    pub(crate) fn words(view: &View, sentence: &str) -> Vec<Self> {
        let word = |word: &str| Self::of(view, word.to_owned());
        sentence.split(' ').map(word).collect()
    }
}

/// A whole record.
pub(crate) struct RecordView {
    /// The members that people write.
    pub(crate) written: Vec<Shown>,
    /// The members that the service writes.
    pub(crate) kept: Vec<Shown>,
    /// The members without a value.
    pub(crate) empty: Vec<Member>,
    /// The meanings of all members, in the order of the proto.
    pub(crate) meanings: Vec<Member>,
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
            meanings: all.clone(),
            json: pretty(&members),
        };
        for member in all {
            let kept = member.written == Written::ByTheService;
            match Shown::of(view, &member, members.get(&member.name)) {
                None => found.empty.push(member),
                Some(shown) if kept => found.kept.push(shown),
                Some(shown) => found.written.push(shown),
            }
        }
        found
    }
}

/// The maximum number of records that a page reads for their names.
const NAMED: usize = 8;

impl Datum {
    /// The links in it.
    pub(super) fn links(&mut self) -> &mut [Link] {
        match self {
            Self::Link(link) => std::slice::from_mut(link),
            Self::Texts(list) => list,
            _ => &mut [],
        }
    }
}

/// Adds to these links the names of their records, as far as the person may read the records.
pub(super) async fn name_links(view: &View, data: impl Iterator<Item = &mut Datum>) {
    name(view, data.flat_map(Datum::links).collect()).await;
}

/// Does the same as [`name_links`] for links.
pub(super) async fn name(view: &View, mut links: Vec<&mut Link>) {
    links.retain(|link| link.address.is_some());
    let names = names(view, links.iter().map(|link| link.text.clone()).collect()).await;
    for link in links {
        link.name = names.get(&link.text).cloned();
    }
}

/// The display names of the first [`NAMED`] of these records. Names that are part of the id are left
/// out.
async fn names(view: &View, mut ids: Vec<String>) -> HashMap<String, String> {
    ids.sort();
    ids.dedup();
    ids.truncate(NAMED);
    let names = some_at_once(ids.into_iter().map(|id| async move {
        let name = name_of(view, &id).await?;
        (name != id && name != short(&id)).then_some((id, name))
    }));
    names.await.into_iter().flatten().collect()
}

async fn name_of(view: &View, id: &str) -> Option<String> {
    let kind = Kind::of_id(id)?;
    Some(title(&read(view, kind, id).await.ok()?.message))
}

fn pretty(members: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(members).unwrap_or_default()
}

impl Shown {
    /// `None` if the member has no value to show.
    pub(crate) fn of(view: &View, member: &Member, value: Option<&Value>) -> Option<Self> {
        let datum = match (value, &member.input) {
            (None, Input::Flag) => Datum::Text(Argument::new("", t::records::NO.to_owned())),
            (None, Input::Number) => Datum::Text(Argument::new("", unset(member))),
            (value, _) => datum(view, member, value?)?,
        };
        let (name, label, about) =
            (member.name.clone(), member.label.clone(), member.about.clone());
        Some(Self { name, label, about, datum })
    }
}

/// The text for a number without a value: zero, unless the number is optional.
fn unset(member: &Member) -> String {
    if !member.is_optional {
        return t::records::ZERO.to_owned();
    }
    match &member.unset {
        Some(default) if default.starts_with(|first: char| first.is_ascii_digit()) => {
            t::records::is_default(default)
        }
        Some(default) => t::records::is_not_set(default),
        None => t::records::IS_NOT_SET.to_owned(),
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
        Value::String(text) => {
            let link = Link::of(view, text.clone());
            if link.address.is_some() && member.name != "id" {
                Datum::Link(link)
            } else {
                Datum::Text(whole(member, Argument::new("", text.clone())))
            }
        }
        Value::Bool(yes) => {
            let text = if *yes { t::records::YES } else { t::records::NO };
            Datum::Text(Argument::new("", text.to_owned()))
        }
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            Datum::Texts(items.iter().map(|item| Link::of(view, plain(item))).collect())
        }
        Value::Array(_) => {
            Datum::Members(arguments(&Map::from_iter([(member.name.clone(), value.clone())])))
        }
        Value::Object(members) => Datum::Members(arguments(members)),
        Value::Number(number) => Datum::Text(Argument::new("", number.to_string())),
    })
}

/// Shows a policy's text in full, because its conditions are at the end.
fn whole(member: &Member, argument: Argument) -> Argument {
    if member.name == "cedar" { Argument { cut: None, ..argument } } else { argument }
}

fn moment(text: &str, now: DateTime<Utc>) -> Option<Moment> {
    let at = DateTime::parse_from_rfc3339(text).ok()?;
    Some(Moment::of(at.to_utc(), now))
}

/// The page of the record with this id, if the person may read it.
pub(crate) fn address(view: &View, id: &str) -> Option<String> {
    let kind = Kind::of_id(id)?;
    (kind.has_ids() && view.may(&kind.get.rpc)).then(|| kind.address(id))
}

/// The display name of a record.
pub(crate) fn title(record: &DynamicMessage) -> String {
    titled(record, &HashMap::new())
}

/// The display names of records. A target has the name of its policy.
pub(super) async fn titles(view: &View, records: &[DynamicMessage]) -> Vec<String> {
    let parts = records.iter().filter(|record| named(record).is_none()).flat_map(telling);
    // An agent is known by the name in its id.
    let parts = parts.filter(|part| !is_agent(part) && address(view, part).is_some());
    let names = names(view, parts.collect()).await;
    records.iter().map(|record| titled(record, &names)).collect()
}

/// Between the two members that a title without a name consists of.
pub(super) const JOINT: &str = " · ";

fn titled(record: &DynamicMessage, names: &HashMap<String, String>) -> String {
    // An id becomes the record's name or the id's last part. Any other text stays unchanged.
    let known = |text: String| match names.get(&text) {
        Some(name) => name.clone(),
        None if IdParts::begins(&text) => short(&text).to_owned(),
        None => text,
    };
    named(record).unwrap_or_else(|| {
        let parts: Vec<_> = telling(record).into_iter().map(known).collect();
        if parts.is_empty() { short(&text(record, "id")).to_owned() } else { parts.join(JOINT) }
    })
}

/// The name that a record has itself.
fn named(record: &DynamicMessage) -> Option<String> {
    let named = ["display_name", "name", "label", "title", "slug", "kid", "organisation"];
    named.iter().map(|name| text(record, name)).find(|name| !name.is_empty())
}

/// The two members that identify a record without a name.
fn telling(record: &DynamicMessage) -> Vec<String> {
    let members = Member::all(&record.descriptor());
    let telling = members
        .iter()
        .filter(|member| member.required && member.name != "tenant_id")
        .map(|member| text(record, &member.name))
        .filter(|text| !text.is_empty());
    telling.take(2).collect()
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
