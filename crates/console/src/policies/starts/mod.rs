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

pub(super) static STARTS: [Start; 10] = [
    Start {
        word: "threshold",
        name: t::policies::LARGE_PAYMENTS,
        about: t::policies::LARGE_PAYMENTS_EFFECT,
        target: "action:payment.*",
        cedar: include_str!("threshold.cedar"),
    },
    Start {
        word: "two-people",
        name: t::policies::TWO_PEOPLE,
        about: t::policies::TWO_PEOPLE_EFFECT,
        target: "action:payment.*",
        cedar: include_str!("two_people.cedar"),
    },
    Start {
        word: "personal-data",
        name: t::policies::PERSONAL_DATA,
        about: t::policies::PERSONAL_DATA_EFFECT,
        target: "action:data.*",
        cedar: include_str!("personal_data.cedar"),
    },
    Start {
        word: "change-window",
        name: t::policies::CHANGE_WINDOW,
        about: t::policies::CHANGE_WINDOW_EFFECT,
        target: "action:release.*",
        cedar: include_str!("change_window.cedar"),
    },
    Start {
        word: "place",
        name: t::policies::COUNTRY,
        about: t::policies::COUNTRY_EFFECT,
        target: "",
        cedar: include_str!("place.cedar"),
    },
    Start {
        word: "duty",
        name: t::policies::DUTY,
        about: t::policies::DUTY_EFFECT,
        target: "action:payment.*",
        cedar: include_str!("duty.cedar"),
    },
    Start {
        word: "code-shell",
        name: t::policies::SHELL,
        about: t::policies::SHELL_EFFECT,
        target: "action:code.*",
        cedar: include_str!("code_shell.cedar"),
    },
    Start {
        word: "code-edits",
        name: t::policies::EDITS,
        about: t::policies::EDITS_EFFECT,
        target: "action:code.*",
        cedar: include_str!("code_edits.cedar"),
    },
    Start {
        word: "code-secrets",
        name: t::policies::SECRETS,
        about: t::policies::SECRETS_EFFECT,
        target: "action:code.*",
        cedar: include_str!("code_secrets.cedar"),
    },
    Start {
        word: "code-mcp",
        name: t::policies::MCP,
        about: t::policies::MCP_EFFECT,
        target: "action:code.*",
        cedar: include_str!("code_mcp.cedar"),
    },
];

impl Start {
    /// The text with this word, or the first one.
    pub(super) fn of(word: &str) -> &'static Self {
        STARTS.iter().find(|start| start.word == word).unwrap_or(&STARTS[0])
    }
}
