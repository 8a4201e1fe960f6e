//! The fields of a form, with a person's input.

use authority_crypto::sha256;
use authority_ids::TenantId;
use prost_reflect::MessageDescriptor;

use crate::kit::{
    escape,
    kinds::{Input, Member, plain},
    meanings,
    prelude::*,
    typed,
};

/// A field of a form.
pub(crate) struct Field {
    /// As the form sends it.
    pub(crate) name: String,
    pub(crate) member: Member,
    pub(crate) text: String,
    /// The words that are chosen.
    chosen: Vec<String>,
    /// The error of the field.
    pub(crate) problem: Option<String>,
    /// The record's current value, if another person has changed it.
    pub(crate) present: Option<String>,
    /// Whether the form contained the field. Other fields stay unchanged.
    pub(crate) is_sent: bool,
    /// In an edit, the fingerprint of the value that the form was given. It shows whether the
    /// person changed the value.
    pub(crate) given: String,
    /// The id of the list of proposals.
    pub(crate) picker: Option<String>,
    /// Proposed values for a line, each with its display name.
    pub(crate) known: Vec<(String, String)>,
    /// The permitted words, each with its display name, if the proto does not list them.
    pub(crate) options: Vec<(String, String)>,
    /// The words that it can have, each with its sentence.
    pub(crate) meanings: Vec<(String, &'static str)>,
    /// A note about all permitted words.
    pub(crate) note: Option<&'static str>,
    /// The fields of the parts of a message, for each of its rows.
    pub(crate) parts: Vec<Vec<Field>>,
    /// The place in a hand-made form.
    pub(crate) place: Place,
    /// The records that the field proposes, in a hand-made form.
    pub(crate) picks: Option<&'static str>,
    /// Whether a list of words also takes words that are not proposed.
    pub(crate) is_closed: bool,
}

/// The place of a field in a form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The first field under this heading.
    First(&'static str),
    /// Below the field before it.
    Next,
    /// Among the fields that are closed at first.
    More,
}

/// The prefix for members of records. Their names could otherwise equal the form's own fields.
const PREFIX: &str = "m.";
/// The prefix of the fields with fingerprints of the given values.
const GIVEN: &str = "given.";
/// The number of characters of a fingerprint.
const FINGERPRINT: usize = 16;
/// The number of characters of a day: `2026-12-31`.
const DAY: usize = 10;
/// The field that lists the form's check boxes.
const SHOWN: &str = "shown";

impl Field {
    /// Creates a field with the member's value.
    pub(crate) fn of(member: Member, value: Option<&Value>) -> Self {
        let chosen = match value {
            Some(Value::Array(items)) => items.iter().map(plain).collect(),
            Some(Value::Null) | None => Vec::new(),
            Some(value) => vec![plain(value)],
        };
        let (name, text) = (format!("{PREFIX}{}", member.name), member.text(value));
        let none = Pairs::default();
        Self {
            parts: parts_of(&member, &name, |part, name| Self::part(part, name, &none)),
            name,
            member,
            text,
            chosen,
            problem: None,
            present: None,
            is_sent: true,
            given: String::new(),
            picker: None,
            known: Vec::new(),
            options: Vec::new(),
            meanings: Vec::new(),
            note: None,
            place: Place::Next,
            picks: None,
            is_closed: false,
        }
    }

    /// A part of a member, with a person's input.
    fn part(member: Member, name: String, form: &Pairs) -> Self {
        let chosen = form.all(&name).map(str::to_owned).collect();
        let text = typed::as_written(form.text(&name));
        let parts = parts_of(&member, &name, |part, name| Self::part(part, name, form));
        Self { name, text, chosen, parts, ..Self::of(member, None) }
    }

    /// The value of this field in an address.
    pub(crate) fn asked<'a>(member: &Member, query: &'a Pairs) -> Option<&'a str> {
        query.one(&format!("{PREFIX}{}", member.name))
    }

    /// The field of a form that edits a record.
    pub(crate) fn editing(member: Member, record: &Map<String, Value>) -> Self {
        let value = record.get(&member.name);
        let field = Self::of(member, value);
        Self { given: field.fingerprint(), ..field }
    }

    /// A short digest of the value. Line ends do not count, since browsers change them.
    fn fingerprint(&self) -> String {
        let written = match self.kind() {
            "flag" => self.is_on().to_string(),
            "choices" => self.chosen.join(","),
            _ => self.text.replace(['\r', '\n'], ""),
        };
        let digest = hex::encode(sha256(written.as_bytes()));
        digest.get(..FINGERPRINT).unwrap_or_default().to_owned()
    }

    /// The field with a person's input. In an edit, `record` has the current members.
    fn of_form(
        member: Member,
        form: &Pairs,
        record: Option<&Map<String, Value>>,
    ) -> (Self, Option<Value>) {
        let name = format!("{PREFIX}{}", member.name);
        let stored = record.and_then(|record| record.get(&member.name));
        let sent: Vec<&str> = form.all(&name).collect();
        // For boxes that are not ticked, a browser sends only this field.
        let is_sent = !sent.is_empty() || form.all(SHOWN).any(|shown| shown == name);
        if record.is_some() && !is_sent {
            return (Self { is_sent, ..Self::of(member, stored) }, None);
        }
        let takes_many = matches!(member.input, Input::Choices(_) | Input::Open);
        let given = member.text(stored);
        let read = match sent.as_slice() {
            [_, _, ..] if !takes_many => Err(t::records::TWICE.to_owned()),
            [text] if !takes_many && stored.is_some() && typed::is_same(&given, text) => {
                Ok(stored.cloned())
            }
            _ => member.read(form, &name),
        };
        // A tenant may be named by its slug, as on the command line.
        let read = read.map(|value| match value {
            Some(Value::String(text)) if member.name == "tenant_id" => {
                Some(Value::from(String::from(TenantId::complete(&text))))
            }
            value => value,
        });
        let (value, problem) = match read {
            Ok(Some(Value::String(text))) if member.input == Input::Text => {
                (Some(Value::from(typed::kept(&given, &text))), None)
            }
            Ok(value) => (value, None),
            Err(problem) => (None, Some(problem)),
        };
        let mut chosen: Vec<String> = sent.iter().map(|text| (*text).to_owned()).collect();
        if member.input == Input::Open {
            chosen = value.iter().filter_map(Value::as_array).flatten().map(plain).collect();
        }
        let text = typed::as_written(form.text(&name));
        let given = form.text(&format!("{GIVEN}{name}")).to_owned();
        let parts = parts_of(&member, &name, |part, name| Self::part(part, name, form));
        (Self { text, chosen, problem, is_sent, given, parts, ..Self::of(member, None) }, value)
    }

    /// The invisible characters of the text. The form shows them to prevent accidental changes.
    pub(crate) fn hidden(&self) -> Option<String> {
        escape::hidden_in(&self.text)
    }

    /// Adds an error of the field, or of a part of it.
    fn add(&mut self, part: &str, problem: &str) {
        let problem =
            if part.is_empty() { problem.to_owned() } else { format!("{part}: {problem}") };
        self.problem = Some(match self.problem.take() {
            Some(before) if before != problem => format!("{before}; {problem}"),
            _ => problem,
        });
    }

    /// The error of the field, or the other person's change, for the top of the page.
    pub(crate) fn trouble(&self) -> Option<String> {
        let present = || Some(t::records::now_has(self.present.as_ref()?));
        self.problem.clone().or_else(present)
    }

    /// A person's input or choice as lines. Empty if the value is removed.
    pub(crate) fn written(&self) -> Vec<String> {
        if self.kind() == "flag" {
            return vec![if self.is_on() { t::records::YES } else { t::records::NO }.to_owned()];
        }
        let lines = self.chosen.iter().flat_map(|text| text.lines());
        lines.filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        self.chosen.iter().any(|chosen| chosen == word)
    }

    pub(crate) fn is_on(&self) -> bool {
        self.chosen.iter().any(|chosen| chosen == "true")
    }

    /// The permitted words; the value is one or several of them.
    pub(crate) fn words(&self) -> &[String] {
        match &self.member.input {
            Input::Choice(words) | Input::Choices(words) => words,
            _ => &[],
        }
    }

    /// Adds the meanings of its words in a form for this kind of records.
    pub(crate) fn explain(&mut self, kind: &str) {
        let name = &self.member.name;
        let of = |word: &String| Some((word.clone(), meanings::meaning(kind, name, word)?));
        let meanings = self.words().iter().filter_map(of).collect();
        let note = meanings::note(kind, name);
        (self.meanings, self.note) = (meanings, note);
    }

    /// The description of a word; empty if it has none.
    pub(crate) fn meaning(&self, word: &str) -> &'static str {
        let found = self.meanings.iter().find(|(known, _)| known == word);
        found.map_or("", |(_, sentence)| *sentence)
    }

    /// The display name of a proposed value.
    pub(crate) fn label(&self, value: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == value).map(|(_, label)| label.as_str())
    }

    /// The chosen words that are not proposed, one in each line.
    pub(crate) fn others(&self) -> String {
        let others = self.chosen.iter().filter(|word| self.label(word).is_none());
        others.map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Whether the field takes texts besides the proposed words.
    pub(crate) fn takes_others(&self) -> bool {
        !self.is_closed || self.options.is_empty() || !self.others().is_empty()
    }

    /// Whether its value is not among its options.
    pub(crate) fn is_other(&self) -> bool {
        !self.text.is_empty() && !self.options.iter().any(|(value, _)| *value == self.text)
    }

    pub(crate) fn rows(&self) -> usize {
        let lines = self.text.lines().count() + 1;
        if self.member.input == Input::Lines { lines.clamp(2, 12) } else { lines.clamp(3, 8) }
    }

    pub(crate) fn has_help(&self) -> bool {
        !self.member.about.is_empty() || !self.hint().is_empty()
    }

    /// The ids of the field's descriptions, for `aria-describedby`; empty without a description.
    pub(crate) fn described_by(&self) -> String {
        let parts = [
            ("about", self.has_help()),
            ("hidden", self.hidden().is_some()),
            ("present", self.present.is_some()),
            ("wrong", self.problem.is_some()),
        ];
        let parts = parts.iter().filter(|(_, is_there)| *is_there);
        parts.map(|(part, _)| format!("{part}-{}", self.name)).collect::<Vec<_>>().join(" ")
    }

    /// The label of the option without a choice.
    pub(crate) fn unchosen(&self) -> String {
        match &self.member.unset {
            _ if self.member.required => t::records::CHOOSE.to_owned(),
            Some(default) => t::records::not_set(default),
            None => t::records::NOT_SET.to_owned(),
        }
    }

    /// The kind of form field, for the template.
    pub(crate) fn kind(&self) -> &'static str {
        match self.member.input {
            Input::Flag => "flag",
            Input::Choice(_) => "choice",
            Input::Maybe => "maybe",
            Input::Choices(_) => "choices",
            Input::Line | Input::Number if !self.options.is_empty() => "options",
            Input::Day if self.text.len() <= DAY => "day",
            Input::Line | Input::Number | Input::Time | Input::Words | Input::Day => "line",
            Input::Open => "open",
            Input::Parts(_) | Input::Rows(..) => "parts",
            Input::Text => "text",
            Input::Lines => "lines",
            Input::Json => "json",
        }
    }

    /// A hint about the input, if the kind of field does not make it clear.
    pub(crate) fn hint(&self) -> &'static str {
        match self.member.input {
            Input::Lines => t::records::ONE_A_LINE,
            Input::Json => t::records::IN_JSON,
            Input::Time => t::records::IN_UTC,
            _ => "",
        }
    }
}

/// The fields of a message's parts, for each of its rows; none if the member is not a message.
fn parts_of(
    member: &Member,
    name: &str,
    field: impl Fn(Member, String) -> Field,
) -> Vec<Vec<Field>> {
    let (parts, rows) = match &member.input {
        Input::Parts(parts) => (parts, vec![name.to_owned()]),
        Input::Rows(parts, rows) => {
            (parts, (0..*rows).map(|row| format!("{name}.{row}")).collect())
        }
        _ => return Vec::new(),
    };
    let row = |row: &String| {
        let parts = parts.iter();
        parts.map(|part| field(part.clone(), format!("{row}.{}", part.name))).collect()
    };
    rows.iter().map(row).collect()
}

/// A form that was sent: its fields, and the values that they hold.
pub(crate) struct SubmittedForm {
    pub(crate) fields: Vec<Field>,
    pub(crate) values: Map<String, Value>,
}

impl SubmittedForm {
    /// Reads a submitted form. `record` has the current members if the form edits a record.
    pub(crate) fn read(
        members: Vec<Member>,
        form: &Pairs,
        record: Option<&Map<String, Value>>,
    ) -> Self {
        let mut values = Map::new();
        let mut fields = Vec::new();
        for member in members {
            let (field, value) = Field::of_form(member, form, record);
            if let Some(value) = value {
                values.insert(field.member.name.clone(), value);
            }
            fields.push(field);
        }
        Self { fields, values }
    }

    /// Whether every text is valid for its member, as far as the console can check.
    pub(crate) fn is_readable(&self) -> bool {
        self.fields.iter().all(|field| field.problem.is_none())
    }

    /// Replaces the values that the person did not change by the record's current values.
    pub(crate) fn follow(&mut self, record: &Map<String, Value>) {
        for field in self.fields.iter_mut().filter(|field| field.is_sent) {
            let present = Field::editing(field.member.clone(), record);
            if field.given != field.fingerprint() {
                field.given = present.given;
                continue;
            }
            let name = &present.member.name;
            match record.get(name) {
                Some(value) => self.values.insert(name.clone(), value.clone()),
                None => self.values.remove(name),
            };
            *field = present;
        }
    }

    /// Notes the record's current values of these members.
    pub(crate) fn note_present(&mut self, names: &[String], record: &Map<String, Value>) {
        for field in self.fields.iter_mut().filter(|field| names.contains(&field.member.name)) {
            let text = field.member.text(record.get(&field.member.name));
            field.present =
                Some(if text.is_empty() { t::records::NO_VALUE.to_owned() } else { text });
        }
    }

    /// Assigns errors to their fields, and returns the other errors.
    pub(crate) fn note(&mut self, problems: Vec<(String, String)>) -> Vec<(String, String)> {
        let mut rest = Vec::new();
        for (path, problem) in problems {
            // `tool.actions[1]`: the member within the request's body, or of the request itself.
            let names: Vec<&str> = path.split(['.', '[']).take(2).collect();
            let of = |field: &&mut Field| names.contains(&field.member.name.as_str());
            match self.fields.iter_mut().find(of) {
                Some(field) => {
                    let part = within(&path, &field.member.name).to_owned();
                    field.add(&part, &problem);
                }
                None => rest.push((path, problem)),
            }
        }
        rest
    }
}

/// The part of a member that a path names: `from` of `delegation.hours.from`.
fn within<'a>(path: &'a str, member: &str) -> &'a str {
    let rest = path.split_once(member).map_or("", |(_, rest)| rest);
    rest.trim_start_matches('.')
}

/// The members of a list request that are filters. A filter that is also a member of the record has
/// the permitted words of that member.
pub(super) fn filters(input: &MessageDescriptor, record: &MessageDescriptor) -> Vec<Member> {
    const PAGING: [&str; 5] = ["limit", "page_token", "count", "tenant_id", "deleted"];
    let mut members = Member::all(input);
    members.retain(|member| !PAGING.contains(&member.name.as_str()));
    for member in &mut members {
        let same = record.get_field_by_name(&member.name).map(|field| Member::of(&field).input);
        if let Some(Input::Choice(words)) = same {
            member.input = Input::Choice(words);
        }
    }
    members
}
