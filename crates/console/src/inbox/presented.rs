//! A request for approval and its warnings, as the service returns them.

use authority_model::proto::approval::{
    Approval, ApprovalFact, ApprovalPresentation, ApprovalTable, SimilarApprovals,
};

use crate::kit::{prelude::*, text};

/// The number of facts that lists show, and the length at which they cut a value, in characters.
const LISTED: usize = 4;
const LONGEST: usize = 48;
/// The number of final characters that a cut account number shows, since people recognise it by
/// them.
const ENDING: usize = 12;

/// A request as people see it.
#[derive(Default)]
pub(crate) struct Presented {
    /// The title that the tool declares; `None` if the request has a general one.
    pub(crate) title: Option<String>,
    /// The title for a decline; as `title` if the tool declares none.
    pub(crate) decline_title: Option<String>,
    /// The letters of the title that differ in script from others of their word.
    pub(crate) mixed_letters: String,
    pub(crate) facts: Vec<Fact>,
    pub(crate) tables: Vec<ApprovalTable>,
    /// Texts that the agent wrote freely.
    pub(crate) words: Vec<Fact>,
    /// The requester's own reason.
    pub(crate) justification: Option<Argument>,
    /// The number of fields that only the whole request has.
    pub(crate) not_shown: usize,
    pub(crate) version: String,
    /// Roles of which no earlier request had this value.
    pub(crate) first_to: Vec<String>,
}

pub(crate) struct Fact {
    pub(crate) label: String,
    /// Its whole value.
    pub(crate) value: Argument,
    pub(crate) mixed_letters: String,
    /// Whether it keeps its line breaks, and is never cut.
    pub(crate) is_block: bool,
    is_account: bool,
}

impl Fact {
    fn of(fact: &ApprovalFact) -> Self {
        Self {
            label: fact.label.clone(),
            value: Argument::new(&fact.path, fact.value.clone()),
            mixed_letters: fact.mixed_letters.clone(),
            is_block: fact.block,
            is_account: fact.role.as_deref() == Some("account"),
        }
    }

    /// The value as a list shows it.
    pub(crate) fn short(&self) -> String {
        let text = &self.value.value;
        let (length, ending) = (text.chars().count(), if self.is_account { ENDING } else { 0 });
        if length <= LONGEST {
            return text.clone();
        }
        let start = text.chars().take(LONGEST - ending);
        start.chain(['…']).chain(text.chars().skip(length - ending)).collect()
    }
}

impl Presented {
    pub(crate) fn of(approval: &Approval) -> Self {
        let reason = approval.justification.clone();
        let justification = reason.map(|text| Argument::new("justification", text));
        let Some(presentation) = &approval.presentation else {
            return Self { justification, ..Self::default() };
        };
        let ApprovalPresentation { title, declared_title, facts, lists, agent_words, .. } =
            presentation;
        let decline_title = match presentation.decline_title.as_str() {
            "" => title,
            _ => &presentation.decline_title,
        };
        Self {
            title: declared_title.then(|| title.clone()),
            decline_title: declared_title.then(|| decline_title.clone()),
            mixed_letters: presentation.mixed_letters.clone(),
            facts: facts.iter().map(Fact::of).collect(),
            tables: lists.clone(),
            words: agent_words.iter().map(Fact::of).collect(),
            justification,
            not_shown: usize::try_from(presentation.not_shown).unwrap_or_default(),
            version: approval.presentation_version.clone(),
            first_to: approval.first_to.clone(),
        }
    }

    /// The facts that lists show.
    pub(crate) fn listed(&self) -> &[Fact] {
        &self.facts[..self.facts.len().min(LISTED)]
    }

    /// The number of fields that lists do not show.
    pub(crate) fn more_than_listed(&self) -> usize {
        let facts = self.facts.len().saturating_sub(LISTED);
        facts + self.tables.len() + self.words.len() + self.not_shown
    }

    /// The facts that a payee or an account is new. These are not warnings.
    pub(crate) fn first_uses(&self) -> Vec<&'static str> {
        let sentence = |role: &String| match role.as_str() {
            "payee" => Some(t::inbox::FIRST_TO_PAYEE),
            "account" => Some(t::inbox::FIRST_TO_ACCOUNT),
            _ => None,
        };
        self.first_to.iter().filter_map(sentence).collect()
    }
}

/// A warning about other requests, with the newest of them.
pub(crate) struct Warning {
    /// The kind of warning, in two words.
    label: &'static str,
    pub(crate) text: &'static str,
    pub(crate) requests: Vec<Other>,
    /// How many more there are.
    pub(crate) more: usize,
}

pub(crate) struct Other {
    pub(crate) id: String,
    pub(crate) label: &'static str,
    pub(crate) asked: Option<Moment>,
    /// Whether it is selected together with the request.
    pub(crate) is_selected: bool,
}

impl Warning {
    /// The warnings about a request. `selected` are the ids of a common selection.
    pub(crate) fn all(approval: &Approval, selected: &[&str], now: DateTime<Utc>) -> Vec<Self> {
        let partly = approval.partly_compared.then(|| Self {
            label: t::inbox::LABEL_PARTLY_COMPARED,
            text: t::inbox::PARTLY_COMPARED,
            requests: Vec::new(),
            more: 0,
        });
        let similar = approval.similar.iter().map(|similar| Self::of(similar, selected, now));
        similar.chain(partly).collect()
    }

    /// The warnings for one line: the first with the number of the others, and all sentences. `None`
    /// without warnings.
    pub(super) fn in_line(all: &[Self]) -> Option<(String, Vec<&'static str>)> {
        let (first, others) = all.split_first()?;
        let label = match others.len() {
            0 => first.label.to_owned(),
            more => t::inbox::label_and_more(first.label, more),
        };
        Some((label, all.iter().map(|warning| warning.text).collect()))
    }

    fn of(similar: &SimilarApprovals, selected: &[&str], now: DateTime<Utc>) -> Self {
        let requests: Vec<Other> = similar
            .requests
            .iter()
            .map(|other| Other {
                id: other.id.clone(),
                label: text::state(&other.state),
                asked: Moment::of_time(other.asked_at, now),
                is_selected: selected.contains(&other.id.as_str()),
            })
            .collect();
        let total = usize::try_from(similar.total).unwrap_or_default();
        let (label, text) = words(&similar.reason);
        Self { label, text, more: total.saturating_sub(requests.len()), requests }
    }
}

/// The label and the sentence of a warning.
fn words(reason: &str) -> (&'static str, &'static str) {
    match reason {
        "document_again" => (t::inbox::LABEL_DOCUMENT_AGAIN, t::inbox::DOCUMENT_AGAIN),
        "new_account" => (t::inbox::LABEL_NEW_ACCOUNT, t::inbox::NEW_ACCOUNT),
        "shared_account" => (t::inbox::LABEL_SHARED_ACCOUNT, t::inbox::SHARED_ACCOUNT),
        _ => (t::inbox::LABEL_SIMILAR, t::inbox::SIMILAR),
    }
}
