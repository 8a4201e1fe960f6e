//! The members of a message, as a person writes and reads them.

use std::collections::BTreeSet;

use authority_api::unique_json;
use chrono::{DateTime, NaiveDate};
use prost_reflect::{FieldDescriptor, Kind as FieldKind, MessageDescriptor, Value as Proto};
use serde_json::{Map, Value};

use super::{
    describe::{below, described, extension, words},
    example::example,
};
use crate::{kit::query::Pairs, texts as t};

/// A member of a message.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) about: String,
    /// The meaning of an absent value: `86,400 (a day)`, `no limit`.
    pub(crate) unset: Option<String>,
    pub(crate) required: bool,
    pub(crate) written: Written,
    pub(crate) input: Input,
    /// Whether it can be absent, which differs from zero.
    pub(crate) is_optional: bool,
    /// Whether the field is a list that bounds something. An empty list sets no bound.
    pub(crate) bounds: bool,
    /// An example value, if the member is written as JSON.
    pub(crate) example: Option<String>,
}

/// Who writes a member, and when.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Always,
    /// Only when the record is created.
    Once,
    ByTheService,
}

/// How a member is written in a form.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Input {
    Flag,
    /// A single word of this list.
    Choice(Vec<String>),
    /// `true`, `false`, or absent.
    Maybe,
    /// Some of these words.
    Choices(Vec<String>),
    Line,
    /// A text of several lines.
    Text,
    /// Texts, one in each line.
    Lines,
    Number,
    Time,
    Json,
    /// Some of the proposed words, and further texts, one in each line.
    Open,
    /// Texts in one line, with commas or spaces between them.
    Words,
    /// A time as the day after which it is over, in UTC.
    Day,
    /// A message, by these members.
    Parts(Vec<Member>),
    /// A list of messages, each by these members, in this number of rows.
    Rows(Vec<Member>, usize),
}

/// Texts that may be longer are written on several lines.
const LINE: u64 = 512;
/// The part of a limit that the form always sends. Alone it sets no limit.
const WINDOW: &str = "window_seconds";

impl Member {
    pub(crate) fn of(field: &FieldDescriptor) -> Self {
        let rules = extension(&field.options(), "buf.validate.field");
        let rules = rules.as_ref().and_then(|rules| rules.as_message());
        let rule = |path: &[&str]| rules.and_then(|rules| below(rules, path));
        let message = field.parent_message();
        let input = input(field, rule);
        let own = extension(&field.options(), "authority.rest.v1.field");
        let set = |name: &str| below(own.as_ref()?.as_message()?, &[name]);
        let (bounds, unset) = (set("bounds").and_then(|value| value.as_bool()), set("unset"));
        let unset = unset.and_then(|value| value.as_str().map(str::to_owned));
        Self {
            name: field.name().to_owned(),
            label: words(field.name(), true),
            about: described(own.as_ref(), &message.parent_file(), field.path()),
            unset,
            required: rule(&["required"]).and_then(|value| value.as_bool()).unwrap_or_default(),
            written: written(field),
            is_optional: field.supports_presence(),
            bounds: bounds.unwrap_or_default(),
            example: (input == Input::Json).then(|| example(field)).flatten(),
            input,
        }
    }

    /// The members of a message, in the order of the proto.
    pub(crate) fn all(message: &MessageDescriptor) -> Vec<Self> {
        let mut fields: Vec<_> = message.fields().collect();
        fields.sort_by_key(|field| field.path().last().copied());
        fields.iter().map(Self::of).collect()
    }

    /// The type of the messages at this field.
    pub(crate) fn message_at(record: &MessageDescriptor, name: &str) -> Option<MessageDescriptor> {
        record.get_field_by_name(name)?.kind().as_message().cloned()
    }

    /// Whether people write it.
    pub(crate) fn is_written(&self) -> bool {
        self.written != Written::ByTheService
    }

    /// Reads the member's value from a form; `None` if it is empty.
    ///
    /// # Errors
    /// The text does not fit the member. The error describes the valid form.
    pub(crate) fn read(&self, form: &Pairs, name: &str) -> Result<Option<Value>, String> {
        let text = form.text(name).replace("\r\n", "\n");
        // Only ASCII spaces are trimmed: other spaces belong to the text.
        let trimmed = text.trim_ascii();
        let filled = |value: Vec<Value>| (!value.is_empty()).then_some(Value::Array(value));
        let plain = || (!trimmed.is_empty()).then(|| Value::from(trimmed));
        Ok(match &self.input {
            Input::Flag => form.one(name).map(|_| Value::Bool(true)),
            Input::Maybe => match trimmed {
                "" => None,
                word => Some(Value::Bool(word == "true")),
            },
            Input::Choices(_) => filled(form.all(name).map(Value::from).collect()),
            Input::Lines => filled(lines(trimmed).map(Value::from).collect()),
            Input::Open => {
                let mut texts: Vec<&str> = form.all(name).flat_map(lines).collect();
                let mut known = BTreeSet::new();
                texts.retain(|text| known.insert(*text));
                filled(texts.into_iter().map(Value::from).collect())
            }
            Input::Words => {
                let words = trimmed.split([',', ';', ' ', '\n']).filter(|word| !word.is_empty());
                filled(words.map(Value::from).collect())
            }
            Input::Parts(parts) => message(parts, form, name)?,
            Input::Rows(parts, rows) => {
                let rows = (0..*rows).map(|row| message(parts, form, &format!("{name}.{row}")));
                let rows: Result<Vec<_>, _> = rows.collect();
                filled(rows?.into_iter().flatten().collect())
            }
            Input::Line | Input::Choice(_) => plain(),
            Input::Number | Input::Json | Input::Time | Input::Day if trimmed.is_empty() => None,
            Input::Day => Some(end_of(trimmed)?),
            Input::Time => {
                DateTime::parse_from_rfc3339(trimmed)
                    .map_err(|_| t::kit::MUST_BE_TIME.to_owned())?;
                plain()
            }
            Input::Text => (!trimmed.is_empty()).then(|| Value::from(text)),
            Input::Number => {
                let number: Result<serde_json::Number, _> = serde_json::from_str(trimmed);
                Some(Value::Number(number.map_err(|_| t::kit::MUST_BE_NUMBER.to_owned())?))
            }
            Input::Json => Some(unique_json::read(trimmed).map_err(t::kit::not_json)?),
        })
    }

    /// Formats a value as the text in a form.
    pub(crate) fn text(&self, value: Option<&Value>) -> String {
        match (value, &self.input) {
            (None | Some(Value::Null), _) => String::new(),
            (Some(value), Input::Json) => serde_json::to_string_pretty(value).unwrap_or_default(),
            (Some(Value::Array(items)), _) => {
                items.iter().map(plain).collect::<Vec<_>>().join("\n")
            }
            (Some(value), _) => plain(value),
        }
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_ascii).filter(|line| !line.is_empty())
}

/// The time at which a day is over.
fn end_of(text: &str) -> Result<Value, String> {
    let next = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(|day| day.succ_opt());
    match next {
        Some(next) => Ok(Value::from(format!("{next}T00:00:00Z"))),
        None if DateTime::parse_from_rfc3339(text).is_ok() => Ok(Value::from(text)),
        None => Err(t::kit::MUST_BE_DAY.to_owned()),
    }
}

/// A message from the fields of its parts; `None` if they are empty.
fn message(parts: &[Member], form: &Pairs, name: &str) -> Result<Option<Value>, String> {
    let mut members = Map::new();
    for part in parts {
        let read = part.read(form, &format!("{name}.{}", part.name));
        let value = read.map_err(|problem| format!("{}: {problem}", part.label))?;
        members.extend(value.map(|value| (part.name.clone(), value)));
    }
    let is_empty = members.keys().all(|name| name == WINDOW);
    Ok((!is_empty).then_some(Value::Object(members)))
}

/// A text without its quotes, anything else as JSON.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn written(field: &FieldDescriptor) -> Written {
    const OUTPUT_ONLY: i32 = 3;
    const IMMUTABLE: i32 = 5;
    let value = extension(&field.options(), "google.api.field_behavior");
    let behaviours = value.as_ref().and_then(|value| value.as_list()).unwrap_or_default();
    let is = |wanted| behaviours.iter().any(|value| value.as_enum_number() == Some(wanted));
    match (is(OUTPUT_ONLY), is(IMMUTABLE)) {
        (true, _) => Written::ByTheService,
        (_, true) => Written::Once,
        _ => Written::Always,
    }
}

fn input(field: &FieldDescriptor, rule: impl Fn(&[&str]) -> Option<Proto>) -> Input {
    let texts = |path: &[&str]| {
        let value = rule(path)?;
        let texts = value.as_list()?.iter().filter_map(|value| value.as_str().map(str::to_owned));
        let texts: Vec<_> = texts.collect();
        (!texts.is_empty()).then_some(texts)
    };
    match field.kind() {
        FieldKind::String if field.is_list() => {
            texts(&["repeated", "items", "string", "in"]).map_or(Input::Lines, Input::Choices)
        }
        _ if field.is_list() || field.is_map() => Input::Json,
        FieldKind::String => {
            let longest = rule(&["string", "max_len"]).and_then(|value| value.as_u64());
            let is_long = longest.unwrap_or_default() > LINE;
            let free = if is_long { Input::Text } else { Input::Line };
            texts(&["string", "in"]).map_or(free, Input::Choice)
        }
        FieldKind::Bool if field.supports_presence() => Input::Maybe,
        FieldKind::Bool => Input::Flag,
        FieldKind::Enum(words) => {
            Input::Choice(words.values().map(|value| value.name().to_owned()).collect())
        }
        FieldKind::Message(message) if message.full_name() == "google.protobuf.Timestamp" => {
            Input::Time
        }
        FieldKind::Message(_) => Input::Json,
        FieldKind::Bytes => Input::Line,
        _ => Input::Number,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{describe::comment, kind::Kind},
        *,
    };

    fn member(kind: &str, name: &str) -> Member {
        let record = &Kind::at(kind).unwrap().record;
        Member::of(&record.get_field_by_name(name).unwrap())
    }

    #[test]
    fn a_member_is_written_as_what_it_holds() {
        let tool = |name: &str| member("tools", name);
        assert!(tool("name").required && tool("name").written == Written::Always);
        assert!(tool("tenant_id").written == Written::Once);
        assert!(tool("created_at").written == Written::ByTheService);
        assert!(tool("actions").input == Input::Lines);
        assert!(tool("input_schema").input == Input::Json);
        assert!(tool("notes").input == Input::Text);
        assert!(tool("created_at").input == Input::Time);
        assert!(matches!(tool("access_level").input, Input::Choice(words) if words.len() == 5));
        assert!(matches!(member("api-keys", "scopes").input, Input::Choices(_)));
        assert!(member("delegations", "can_delegate").input == Input::Flag);
        assert!(member("delegations", "depth").input == Input::Number);
        assert_eq!(tool("workspace_id").label, "Workspace ID");
    }

    #[test]
    fn a_comment_has_the_meaning_of_an_absent_value() {
        let mut found = 0;
        for kind in super::super::kind::KINDS.iter() {
            for field in kind.record.fields() {
                let Some(unset) = Member::of(&field).unset else { continue };
                let comment = comment(&field.parent_message().parent_file(), field.path());
                let comment = comment.to_lowercase();
                assert!(comment.contains(&unset), "{}: {comment}", field.full_name());
                found += 1;
            }
        }
        assert!(found > 20, "{found}");
    }

    #[test]
    fn a_form_is_read_as_json_and_shown_again() {
        for (kind, name, text, expected) in [
            ("tools", "actions", "a.b\r\n\r\n  c.*  ", Some(json!(["a.b", "c.*"]))),
            ("tools", "name", "  x ", Some(json!("x"))),
            ("tools", "notes", "one\r\ntwo", Some(json!("one\ntwo"))),
            ("tools", "metadata", "{\"a\": 1}", Some(json!({"a": 1}))),
            ("tools", "metadata", " ", None),
            ("delegations", "depth", "3", Some(json!(3))),
        ] {
            let form = format!("m.x={}", crate::kit::query::encoded(text));
            let member = member(kind, name);
            let read = member.read(&Pairs::read(form.as_bytes()), "m.x").unwrap();
            assert_eq!(read, expected, "{name}");
            let again = crate::kit::query::encoded(&member.text(read.as_ref()));
            let again = member.read(&Pairs::read(format!("m.x={again}").as_bytes()), "m.x");
            assert_eq!(again, Ok(expected), "{name}");
        }
        let tenant = |name: &str| member("tenants", name).unset;
        assert_eq!(tenant("valid_for_seconds").as_deref(), Some("60"));
        assert_eq!(tenant("approval_ttl_seconds").as_deref(), Some("86,400 (a day)"));
        assert_eq!(tenant("decisions_per_second").as_deref(), Some("no limit"));
        assert_eq!(tenant("approval_max_auth_age_seconds").as_deref(), Some("any time"));
        assert_eq!(tenant("name"), None);
        let state_machine = member("state-machines", "tenant_id");
        assert_eq!(state_machine.unset.as_deref(), Some("the installation's own"));
        let wrong = member("tools", "metadata").read(&Pairs::read(b"m.x=%7B"), "m.x");
        assert!(wrong.is_err_and(|text| text.starts_with("is not JSON")));
        let until = member("delegations", "expires_at");
        let read = |text: &str| until.read(&Pairs::read(format!("m.x={text}").as_bytes()), "m.x");
        assert_eq!(read("2026-11-24T09:00:00Z"), Ok(Some(json!("2026-11-24T09:00:00Z"))));
        assert_eq!(
            (read("2026-11-24"), read("")),
            (Err(t::kit::MUST_BE_TIME.to_owned()), Ok(None))
        );
    }

    #[test]
    fn a_hand_made_field_is_read_as_its_member() {
        let read = |input: Input, form: &str| {
            Member { input, ..member("tools", "metadata") }.read(&Pairs::read(form.as_bytes()), "m")
        };
        let open = read(Input::Open, "m=payment.*&m=a.b%0D%0Apayment.*%0D%0A");
        assert_eq!(open, Ok(Some(json!(["payment.*", "a.b"]))));
        assert_eq!(read(Input::Words, "m=DE,+AT;FR"), Ok(Some(json!(["DE", "AT", "FR"]))));
        assert_eq!(read(Input::Words, "m=+"), Ok(None));
        // The day itself still belongs to the time.
        assert_eq!(read(Input::Day, "m=2026-12-31"), Ok(Some(json!("2027-01-01T00:00:00Z"))));
        assert_eq!(read(Input::Day, "m=soon"), Err(t::kit::MUST_BE_DAY.to_owned()));
        assert_eq!(read(Input::Day, "m="), Ok(None));
        let delegations = &Kind::at("delegations").unwrap().record;
        let limit = Member::message_at(delegations, "max_total_amount").unwrap();
        let limit = || Input::Parts(Member::all(&limit));
        assert_eq!(
            read(limit(), "m.amount=20000&m.window_seconds=86400"),
            Ok(Some(json!({"amount": "20000", "window_seconds": 86400})))
        );
        assert_eq!(read(limit(), "m.amount=&m.window_seconds=86400"), Ok(None));
        let facts = Input::Rows(vec![member("tools", "name")], 3);
        let both = json!([{"name": "a"}, {"name": "c"}]);
        assert_eq!(read(facts, "m.0.name=a&m.1.name=&m.2.name=c"), Ok(Some(both)));
    }
}
