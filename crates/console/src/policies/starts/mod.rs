//! The texts with which a new policy can begin.

use crate::texts as t;

/// A text to begin with.
pub(super) struct Start {
    pub(super) word: &'static str,
    pub(super) name: &'static str,
    /// The effect, in a sentence.
    pub(super) about: &'static str,
    /// Its proposed target; empty for every action.
    pub(super) target: &'static str,
    pub(super) cedar: &'static str,
}

#[rustfmt::skip] // a line for each text
pub(super) static STARTS: [Start; 10] = [
    start("threshold", t::policies::LARGE_PAYMENTS, t::policies::LARGE_PAYMENTS_EFFECT, "action:payment.*", include_str!("threshold.cedar")),
    start("two-people", t::policies::TWO_PEOPLE, t::policies::TWO_PEOPLE_EFFECT, "action:payment.*", include_str!("two_people.cedar")),
    start("personal-data", t::policies::PERSONAL_DATA, t::policies::PERSONAL_DATA_EFFECT, "action:data.*", include_str!("personal_data.cedar")),
    start("change-window", t::policies::CHANGE_WINDOW, t::policies::CHANGE_WINDOW_EFFECT, "action:release.*", include_str!("change_window.cedar")),
    start("place", t::policies::COUNTRY, t::policies::COUNTRY_EFFECT, "", include_str!("place.cedar")),
    start("duty", t::policies::DUTY, t::policies::DUTY_EFFECT, "action:payment.*", include_str!("duty.cedar")),
    start("code-shell", t::policies::SHELL, t::policies::SHELL_EFFECT, "action:code.*", include_str!("code_shell.cedar")),
    start("code-edits", t::policies::EDITS, t::policies::EDITS_EFFECT, "action:code.*", include_str!("code_edits.cedar")),
    start("code-secrets", t::policies::SECRETS, t::policies::SECRETS_EFFECT, "action:code.*", include_str!("code_secrets.cedar")),
    start("code-mcp", t::policies::MCP, t::policies::MCP_EFFECT, "action:code.*", include_str!("code_mcp.cedar")),
];

const fn start(
    word: &'static str,
    name: &'static str,
    about: &'static str,
    target: &'static str,
    cedar: &'static str,
) -> Start {
    Start { word, name, about, target, cedar }
}

impl Start {
    /// The text with this word, or the first one.
    pub(super) fn of(word: &str) -> &'static Self {
        STARTS.iter().find(|start| start.word == word).unwrap_or(&STARTS[0])
    }
}
