//! The coding agents, and the form of their hooks' answers.

use serde_json::{Value, json};

/// The path below which each coding agent has its operation.
const PATH: &str = "/v1/hooks/";

/// A coding agent that blocks a call if its hook fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Claude Code 2.1.295 or later, with `"onFailure": "block"`.
    ClaudeCode,
    /// Cursor, with `"failClosed": true`.
    Cursor,
}

impl Client {
    pub const ALL: [Self; 2] = [Self::ClaudeCode, Self::Cursor];

    /// The name in paths and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.word() == word)
    }

    /// The coding agent of a path at or below its operation.
    pub fn of_path(path: &str) -> Option<Self> {
        let rest = path.strip_prefix(PATH)?;
        Self::from_word(rest.split(['/', ':']).next()?)
    }

    /// The event that the hook decides.
    pub(crate) const fn event(self) -> &'static str {
        match self {
            Self::ClaudeCode => "PreToolUse",
            Self::Cursor => "preToolUse",
        }
    }

    /// The answer that lets the call go on.
    ///
    /// For Claude Code it has no opinion: the user's own permission rules still apply. With
    /// `failClosed`, Cursor blocks a call without an explicit permission.
    pub fn allowed(self) -> Value {
        match self {
            Self::ClaudeCode => json!({}),
            Self::Cursor => json!({"permission": "allow"}),
        }
    }

    /// The answer that blocks the call. The model reads the reason.
    pub fn denied(self, reason: &str) -> Value {
        match self {
            Self::ClaudeCode => json!({"hookSpecificOutput": {
                "hookEventName": self.event(),
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            }}),
            Self::Cursor => json!({"permission": "deny", "user_message": reason}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_a_client_is_answered_in_its_form() {
        for (path, client) in [
            ("/v1/hooks/claude-code", Some(Client::ClaudeCode)),
            ("/v1/hooks/claude-code/", Some(Client::ClaudeCode)),
            ("/v1/hooks/claude-code:x", Some(Client::ClaudeCode)),
            ("/v1/hooks/cursor/more", Some(Client::Cursor)),
            ("/v1/hooks/codex", None),
            ("/v1/hooks/", None),
            ("/v1/hooks", None),
            ("/x/v1/hooks/cursor", None),
        ] {
            assert_eq!(Client::of_path(path), client, "{path}");
        }
    }
}
