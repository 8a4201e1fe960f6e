//! What the relay waits for: lists of tools, and decisions about a client's responses.

use std::{collections::HashSet, time::Duration};

use crate::mcp::{
    definition::Definition,
    event::{CallId, Grants},
    message::Id,
};

/// Why the server's tools are listed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Purpose {
    Call(CallId),
    /// For a list of the client.
    Client,
    /// To report changes.
    Observe,
}

/// The relay's own request for the server's tools, which asks for one page after the other.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) running: Option<Running>,
    /// Purposes that came after the running one had begun: its answer may be older than they are.
    pub(super) queued: Vec<Purpose>,
}

pub(super) struct Running {
    pub(super) id: Id,
    pub(super) began_at: Duration,
    pub(super) purposes: Vec<Purpose>,
    pub(super) found: Vec<Definition>,
}

/// A client's `tools/list`, and what it still waits for.
pub(super) struct ListRequest {
    pub(super) id: Id,
    pub(super) stateless: bool,
    pub(super) definitions: Option<Vec<Definition>>,
    pub(super) grants: Option<Grants>,
    /// Whether the record was read after the request.
    pub(super) has_record: bool,
}

/// A client's response to a request of the server. It is forwarded once each running call permits it.
pub(super) struct WaitingAnswer {
    pub(super) line: Vec<u8>,
    pub(super) waits_for: HashSet<CallId>,
}
