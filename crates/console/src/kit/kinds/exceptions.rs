//! The kinds of records with pages that differ from the protos' definition, with the reasons.

use super::operation::{Operation, Shape};
use crate::texts as t;

/// The differences of a kind.
pub(crate) struct Exception {
    /// The kind's name in ids.
    kind: &'static str,
    /// The description, if the proto describes only the message.
    pub(super) about: Option<&'static str>,
    /// A warning about the permissions that a change may give, if the form does not show them.
    pub(crate) warning: Option<&'static str>,
    /// Whether it has no pages of records at all.
    pub(super) is_left_out: bool,
    /// A record's separate page: its part of the address, and the text of the link to it.
    pub(super) page: Option<(&'static str, &'static str)>,
    /// Whether people can only read its records here.
    is_read_only: bool,
    /// Operations that have no form here, by their words.
    without: &'static [&'static str],
    /// Members that no form here has.
    unwritten: &'static [&'static str],
    /// Members that can be set only when a record is created.
    unchanged: &'static [&'static str],
    /// The member with the id of the record to which a record of this kind belongs.
    pub(crate) part_of: Option<&'static str>,
    /// The state of new records, if people can't choose it.
    pub(crate) first_state: Option<&'static str>,
    /// The page that creates such records, if it is not the form.
    pub(super) new_page: Option<&'static str>,
}

/// A kind without exceptions.
const USUAL: Exception = Exception {
    kind: "",
    about: None,
    warning: None,
    is_left_out: false,
    page: None,
    is_read_only: false,
    without: &[],
    unwritten: &[],
    unchanged: &[],
    part_of: None,
    first_state: None,
    new_page: None,
};
/// The page of a stop.
const STOP: Option<(&str, &str)> = Some(("stop", t::kit::STOP_PAGE));

static EXCEPTIONS: [Exception; 10] = [
    Exception { kind: "api_key", about: Some(t::kit::ABOUT_API_KEYS), ..USUAL },
    Exception {
        kind: "applies_to",
        warning: Some(t::kit::TARGETS_WARNING),
        part_of: Some("policy_id"),
        ..USUAL
    },
    // Approvals have their own pages: people can answer only requests that their session has
    // opened.
    Exception { kind: "approval", is_left_out: true, ..USUAL },
    // A policy's text is activated and observed only on the policy's own page, the former after a trial.
    Exception {
        kind: "policy",
        warning: Some(t::kit::POLICY_WARNING),
        page: Some(("policies", t::kit::POLICY_PAGE)),
        without: &["activate", "observe", "unobserve"],
        unwritten: &["state"],
        unchanged: &["cedar"],
        first_state: Some("draft"),
        new_page: Some("/console/policies/new"),
        ..USUAL
    },
    // Stops are created and released on pages that show the consequences first.
    Exception { kind: "stop_signal", page: STOP, is_read_only: true, ..USUAL },
    Exception { kind: "quarantine", page: STOP, is_read_only: true, ..USUAL },
    Exception { kind: "principal", page: Some(("agents", t::kit::AGENT_PAGE)), ..USUAL },
    Exception { kind: "delegation", page: Some(("delegations", t::kit::DELEGATION_PAGE)), ..USUAL },
    // A definition is pinned only on the page that shows it.
    Exception {
        kind: "tool",
        page: Some(("definitions", t::kit::TOOL_PAGE)),
        without: &["pin"],
        ..USUAL
    },
    Exception { kind: "webhook_endpoint", page: Some(("webhooks", t::kit::WEBHOOK_PAGE)), ..USUAL },
];

impl Exception {
    /// The exception for the kind with this name in ids.
    pub(super) fn of(kind: &str) -> &'static Self {
        EXCEPTIONS.iter().find(|exception| exception.kind == kind).unwrap_or(&USUAL)
    }

    /// Whether people may do this here.
    pub(super) fn offers(&self, operation: &Operation) -> bool {
        let reads = matches!(operation.shape, Shape::List | Shape::Get);
        reads || !(self.is_read_only || self.without.contains(&operation.word.as_str()))
    }

    /// Whether a form for an operation of this shape leaves a member out.
    pub(crate) fn withholds(&self, shape: Shape, member: &str) -> bool {
        self.unwritten.contains(&member)
            || (shape == Shape::Edit && self.unchanged.contains(&member))
    }
}
