//! A request on its way: from its receipt to its report.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::mcp::{
    decision::{Hold, Permit},
    event::CallId,
    message::{Id, Request},
};

/// A request that is decided before it is forwarded.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    /// Members of the request.
    pub(crate) params: Map<String, Value>,
    /// The bytes to forward.
    pub(crate) line: Vec<u8>,
    pub(crate) era: Era,
    pub(crate) stage: Stage,
    /// The client's later input, for the decision request.
    pub(crate) input: Option<Value>,
    /// The question, without what differs between its attempts.
    pub(crate) question: Option<Value>,
    /// When the last question was sent.
    pub(crate) asked_at: Duration,
    /// How often the question was asked.
    pub(crate) asked: u8,
    /// The permission under which the call is forwarded.
    pub(crate) permit: Option<Permit>,
    /// The permitted decisions of earlier rounds of this call.
    pub(crate) earlier: Vec<String>,
    /// The round of a client that asks again.
    pub(crate) round: u8,
    /// When people were first asked.
    pub(crate) held_since: Option<Duration>,
    /// The hold that a returning client waits for.
    pub(crate) resumes: Option<Hold>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// `tools/call`, with the client's id.
    Tool { id: Id, name: String },
    /// Another method, with the client's id.
    Method { id: Id, name: String },
    /// The client's response to a request of the server during a call.
    Answer { request: Id, of: CallId },
}

/// The protocol era of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Era {
    /// Up to 2025-11-25: sessions that begin with `initialize`.
    Session,
    /// From 2026-07-28: each request has its client's capabilities.
    Stateless { elicits_url: bool },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stage {
    /// Waits for the server's definitions. The approval to cite is kept.
    Listing { cite: Option<String> },
    /// Waits for the service's record of the server.
    Record { seen: Option<String>, cite: Option<String> },
    /// Waits for the resource that it names. The approval to cite is kept.
    Resource { cite: Option<String> },
    /// Waits for a decision.
    Asking,
    /// Waits for people.
    Holding { hold: Hold, until: Duration, next_progress: Duration },
    /// Waits for the stream of stop conditions.
    Opening,
    /// Waits for the record that it begins.
    Beginning,
    /// The server works on it.
    Forwarded,
}

impl Call {
    pub(crate) fn new(kind: Kind, params: Map<String, Value>, line: Vec<u8>) -> Self {
        let era = Era::of(&params);
        Self {
            kind,
            params,
            line,
            era,
            stage: Stage::Listing { cite: None },
            input: None,
            question: None,
            asked_at: Duration::ZERO,
            asked: 0,
            permit: None,
            earlier: Vec::new(),
            round: 0,
            held_since: None,
            resumes: None,
        }
    }

    pub(crate) fn of_tool(request: Request, name: String) -> Self {
        Self::new(Kind::Tool { id: request.id, name }, request.params, request.line)
    }

    pub(crate) fn of_method(request: Request) -> Self {
        let kind = Kind::Method { id: request.id, name: request.method };
        Self::new(kind, request.params, request.line)
    }

    /// The client's id of the request, if the client waits for an answer.
    pub(crate) fn id(&self) -> Option<&Id> {
        match &self.kind {
            Kind::Tool { id, .. } | Kind::Method { id, .. } => Some(id),
            Kind::Answer { .. } => None,
        }
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.era != Era::Session
    }

    pub(crate) fn is_forwarded(&self) -> bool {
        self.stage == Stage::Forwarded
    }

    /// The tool's arguments.
    pub(crate) fn arguments(&self) -> Map<String, Value> {
        self.params.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default()
    }

    /// The token under which the client takes reports of progress.
    pub(crate) fn progress_token(&self) -> Option<&Value> {
        self.params.get("_meta")?.get("progressToken")
    }

    /// The permitted decisions that are to be reported.
    pub(crate) fn decisions(&self) -> Vec<String> {
        let own = self.permit.iter().map(|permit| permit.decision_id.clone());
        self.earlier.iter().cloned().chain(own).collect()
    }
}

impl Era {
    pub(crate) fn of(params: &Map<String, Value>) -> Self {
        const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
        const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
        let Some(meta) = params.get("_meta").filter(|meta| meta.get(VERSION).is_some()) else {
            return Self::Session;
        };
        let elicits = meta.get(CAPABILITIES).and_then(|all| all.get("elicitation"));
        let elicits_url = elicits.is_some_and(|modes| modes.get("url").is_some());
        Self::Stateless { elicits_url }
    }
}
