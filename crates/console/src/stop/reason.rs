//! The reason of a stop, chosen from a list, with optional details.

use crate::{kit::query::Pairs, texts as t};

/// The reasons to choose from. The first is preset.
pub(super) const REASONS: [&str; 5] = [
    t::stop::UNEXPECTED,
    t::stop::HARMFUL,
    t::stop::LEAKED,
    t::stop::INCIDENT,
    t::stop::MAINTENANCE,
];

/// Returns the reason in a form. Empty if the form has none.
pub(super) fn of(form: &Pairs) -> String {
    match (form.text("reason").trim(), form.text("details").trim()) {
        (reason, "") => reason.to_owned(),
        ("", details) => details.to_owned(),
        (reason, details) => t::stop::with_details(reason, details),
    }
}
