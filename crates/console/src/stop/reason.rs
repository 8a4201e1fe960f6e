//! The reason of a stop, chosen from a list, with optional details.

use crate::kit::query::Pairs;

/// The reasons to choose from. The first is preset.
pub(super) const REASONS: [&str; 5] = [
    "Unexpected behaviour",
    "Wrong or harmful action",
    "Leaked or stolen credential",
    "Incident under investigation",
    "Maintenance",
];

/// Returns the reason in a form. Empty if the form has none.
pub(super) fn of(form: &Pairs) -> String {
    match (form.text("reason").trim(), form.text("details").trim()) {
        (reason, "") => reason.to_owned(),
        ("", details) => details.to_owned(),
        (reason, details) => format!("{reason}: {details}"),
    }
}
