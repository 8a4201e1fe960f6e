//! The texts with which a new policy can begin.

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
        name: "Large payments",
        about: "Holds payments above an amount until a person approves them.",
        target: "action:payment.*",
        cedar: include_str!("threshold.cedar"),
    },
    Start {
        word: "two-people",
        name: "Two people",
        about: "Holds very large payments until two people approve them.",
        target: "action:payment.*",
        cedar: include_str!("two_people.cedar"),
    },
    Start {
        word: "personal-data",
        name: "Personal data",
        about: "Holds access to confidential resources until a person approves it.",
        target: "action:data.*",
        cedar: include_str!("personal_data.cedar"),
    },
    Start {
        word: "change-window",
        name: "Change window",
        about: "Denies releases from Friday evening to Monday morning.",
        target: "action:release.*",
        cedar: include_str!("change_window.cedar"),
    },
    Start {
        word: "place",
        name: "A country",
        about: "Denies actions in a country, and actions without a stated country.",
        target: "",
        cedar: include_str!("place.cedar"),
    },
    Start {
        word: "duty",
        name: "A duty",
        about: "Adds a duty for the agent to each permission of a payment.",
        target: "action:payment.*",
        cedar: include_str!("duty.cedar"),
    },
    Start {
        word: "code-shell",
        name: "Shell commands of a coding agent",
        about: "Holds commands that delete, force a push, publish or send data, by their text.",
        target: "action:code.*",
        cedar: include_str!("code_shell.cedar"),
    },
    Start {
        word: "code-edits",
        name: "Edits of a coding agent",
        about: "Holds changes of files outside of the project.",
        target: "action:code.*",
        cedar: include_str!("code_edits.cedar"),
    },
    Start {
        word: "code-secrets",
        name: "Secrets and a coding agent",
        about: "Denies reading and changing files with secrets, by their names.",
        target: "action:code.*",
        cedar: include_str!("code_secrets.cedar"),
    },
    Start {
        word: "code-mcp",
        name: "MCP servers of a coding agent",
        about: "Holds calls of MCP servers.",
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
