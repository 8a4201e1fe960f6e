//! The events and the actions of the relay.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::mcp::{decision::Decision, question::ResourceName, record::ServerRecord};

/// Identifies a call in the relay.
pub(crate) type CallId = u64;

#[derive(Debug)]
pub(crate) enum Event {
    /// A line of the client.
    Client(Vec<u8>),
    /// A line of the server.
    Server(Vec<u8>),
    /// The service's record of the server.
    Record(Result<Box<ServerRecord>, String>),
    /// The action patterns of the agent's grants.
    Grants(Result<Grants, String>),
    /// The id of the resource that a call names; `None` if the service knows none.
    Resource(CallId, Result<Option<String>, String>),
    /// The response to a decision request. A permission in it is verified.
    Decided(CallId, Result<Decision, AskFailure>),
    /// The stop conditions of a permission are watched.
    Watching(CallId),
    /// The stop conditions cannot be watched.
    Unwatched(CallId, String),
    /// An action is recorded as begun, or why it can't be.
    Begun(CallId, Result<(), String>),
    /// A permission has ended: the condition.
    Stopped(CallId, String),
    /// A held decision has changed: the state of its approval.
    Approval(CallId, String),
    /// Time has passed.
    Tick,
    /// The server has ended.
    ServerGone,
    /// The client has ended.
    ClientGone,
}

/// Why a question has no decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AskFailure {
    /// No usable answer came in time.
    Unavailable(String),
    /// The service refuses the question itself.
    Refused(String),
}

/// The actions that an agent may perform, as patterns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grants {
    pub(crate) permitted: Vec<String>,
    pub(crate) denied: Vec<String>,
}

impl Grants {
    /// Whether a grant covers the action and no denial covers it.
    pub(crate) fn cover(&self, action: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| covers(pattern, action));
        any(&self.permitted) && !any(&self.denied)
    }
}

fn covers(pattern: &str, action: &str) -> bool {
    match pattern.strip_suffix(".*") {
        Some(prefix) => action.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.')),
        None => pattern == "*" || pattern == action,
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    ToClient(Vec<u8>),
    ToServer(Vec<u8>),
    /// Reads the service's record of the server.
    LoadRecord,
    /// Reads the agent's grants.
    LoadGrants,
    /// Finds the resource that a call names.
    LookUp {
        call: CallId,
        named: ResourceName,
    },
    /// Requests a decision. All attempts of this request have the same key.
    Ask {
        call: CallId,
        question: Value,
        key: String,
    },
    /// Watches the stop conditions of a permission.
    Watch {
        call: CallId,
        decision_id: String,
    },
    /// Follows a held decision.
    Follow {
        call: CallId,
        decision_id: String,
    },
    /// Ends the streams of a call.
    Forget(CallId),
    /// Records that a permitted action begins. After a crash, the next process reports it.
    Begin {
        call: CallId,
        decision_id: String,
        /// Whether it uses an approval.
        is_approved: bool,
    },
    /// Reports the outcome of a permitted action.
    Report {
        decision_id: String,
        outcome: Outcome,
        detail: String,
    },
    /// Reports definitions as the server sends them.
    Observe(Vec<Map<String, Value>>),
    /// A message for the person who runs the command.
    Warn(String),
    /// Ends the server after this time.
    Kill(Duration),
}

/// The outcome of a permitted action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Executed,
    Failed,
    Abandoned,
}

impl Outcome {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_cover_actions_and_denials_win() {
        let grants = |permitted: &[&str], denied: &[&str]| Grants {
            permitted: permitted.iter().map(ToString::to_string).collect(),
            denied: denied.iter().map(ToString::to_string).collect(),
        };
        assert!(grants(&["mcp.a.*"], &[]).cover("mcp.a.echo"));
        assert!(grants(&["*"], &[]).cover("mcp.a.echo"));
        assert!(grants(&["mcp.a.echo"], &[]).cover("mcp.a.echo"));
        assert!(!grants(&["mcp.a.*"], &[]).cover("mcp.ab.echo"));
        assert!(!grants(&["mcp.a.*"], &[]).cover("mcp.a"));
        assert!(!grants(&["mcp.*"], &["mcp.a.echo"]).cover("mcp.a.echo"));
        assert!(!grants(&[], &[]).cover("mcp.a.echo"));
    }
}
