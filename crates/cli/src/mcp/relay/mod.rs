//! The relay as a state machine: it takes an event and returns the actions to perform, in order.
//!
//! No request reaches the server unless it passes by the table of methods, or a verified permission
//! for it is in force and watched.

mod asking;
mod client;
mod forwarding;
mod holding;
mod lists;
mod pending;
mod rounds;
mod server;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use authority_crypto::{hex, random};
use serde_json::{Map, Value};

use crate::mcp::{
    call::{Call, Kind},
    event::{Action, CallId, Event},
    message::Id,
    question::Asker,
    record::ServerRecord,
    state::StateSeal,
};
use pending::{ListRequest, Listing, WaitingAnswer};

/// How long the service's record of the server is used.
const RECORD_LIFETIME: Duration = Duration::from_secs(60);

/// How the relay treats calls.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) asker: Asker,
    /// How long a held call may wait, over all its rounds.
    pub(crate) hold_budget: Duration,
    /// Whether the server is ended if a stopped call does not end.
    pub(crate) kill_on_stop: bool,
    /// Whether the server receives the permission of each call.
    pub(crate) permit_to_tool: bool,
    /// Whether a denial is a JSON-RPC error instead of a result that the model reads.
    pub(crate) denial_is_error: bool,
}

/// A relay between one client and one server.
pub(crate) struct Relay {
    settings: Settings,
    seal: StateSeal,
    /// Begins the ids of the relay's own requests to the server.
    own: String,
    now: Duration,
    next: u64,
    /// The service's record of the server, and when it was read.
    record: Option<(Box<ServerRecord>, Duration)>,
    /// When the record was last asked for.
    loading_since: Option<Duration>,
    calls: BTreeMap<CallId, Call>,
    /// The client's requests that pass undecided, with their methods.
    passing: HashMap<Id, String>,
    /// The server's requests that the client has not answered, with their methods.
    server_requests: HashMap<Id, String>,
    /// The client's answers that wait for decisions, by the server's request.
    answers: HashMap<Id, WaitingAnswer>,
    /// Requests that were answered before the server did. Its answers are dropped.
    ended: HashSet<Id>,
    listing: Listing,
    lists: Vec<ListRequest>,
    /// The protocol members of the client's latest stateless request.
    meta: Option<Map<String, Value>>,
    /// The rounds that a client may continue: the nonce, the decisions to report, and the end.
    open_rounds: HashMap<String, (Vec<String>, Duration)>,
    /// Whether the session, if there is one, is ready for the relay's own requests.
    ready: bool,
    /// When the client last sent something.
    used_at: Duration,
    out: Vec<Action>,
}

impl Relay {
    /// # Errors
    /// The system gives no random bytes.
    pub(crate) fn new(settings: Settings) -> Result<Self, authority_crypto::Error> {
        Ok(Self {
            settings,
            seal: StateSeal::new()?,
            own: format!("agent-authority-{}-", hex(&random::<8>()?)),
            now: Duration::ZERO,
            next: 0,
            record: None,
            loading_since: None,
            calls: BTreeMap::new(),
            passing: HashMap::new(),
            server_requests: HashMap::new(),
            answers: HashMap::new(),
            ended: HashSet::new(),
            listing: Listing::default(),
            lists: Vec::new(),
            meta: None,
            open_rounds: HashMap::new(),
            ready: false,
            used_at: Duration::ZERO,
            out: Vec::new(),
        })
    }

    /// Takes an event at a time of the relay's own clock, which never goes back.
    pub(crate) fn handle(&mut self, event: Event, now: Duration) -> Vec<Action> {
        self.now = now;
        match event {
            Event::Client(line) => self.client_line(&line),
            Event::Server(line) => self.server_line(line),
            Event::Record(read) => self.record_read(read),
            Event::Grants(read) => self.grants_read(&read),
            Event::Resource(call, found) => self.resource_found(call, found),
            Event::Decided(call, decided) => self.decided(call, decided),
            Event::Watching(call) => self.watched(call),
            Event::Begun(call, begun) => self.begun(call, begun),
            Event::Unwatched(call, why) => self.unwatched(call, &why),
            Event::Stopped(call, condition) => self.stopped(call, &condition),
            Event::Approval(call, state) => self.approval(call, &state),
            Event::Tick => self.tick(),
            Event::ServerGone => self.server_gone(),
            Event::ClientGone => self.client_gone(),
        }
        std::mem::take(&mut self.out)
    }

    /// Whether no request is on its way.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }

    fn send(&mut self, action: Action) {
        self.out.push(action);
    }

    fn warn(&mut self, message: impl Into<String>) {
        self.out.push(Action::Warn(message.into()));
    }

    fn add(&mut self, call: Call) -> CallId {
        self.next += 1;
        self.calls.insert(self.next, call);
        self.next
    }

    /// Returns a new id for a request of the relay itself.
    fn own_id(&mut self) -> Id {
        self.next += 1;
        Id::Text(format!("{}{}", self.own, self.next))
    }

    /// The call of a client's request.
    fn call_of(&self, id: &Id) -> Option<CallId> {
        self.calls.iter().find(|(_, call)| call.id() == Some(id)).map(|(call, _)| *call)
    }

    /// The tool calls that the server works on.
    fn running(&self) -> Vec<CallId> {
        let running = self.calls.iter().filter(|(_, call)| {
            call.is_forwarded() && matches!(call.kind, Kind::Tool { .. } | Kind::Method { .. })
        });
        running.map(|(call, _)| *call).collect()
    }

    fn record(&self) -> Option<&ServerRecord> {
        self.record.as_ref().map(|(record, _)| record.as_ref())
    }

    /// The service's record, unless it is too old.
    fn fresh_record(&self) -> Option<&ServerRecord> {
        let (record, read_at) = self.record.as_ref()?;
        (self.now.saturating_sub(*read_at) < RECORD_LIFETIME).then_some(record.as_ref())
    }

    fn load_record(&mut self) {
        self.loading_since = Some(self.now);
        self.send(Action::LoadRecord);
    }

    fn tick(&mut self) {
        self.holds_tick();
        self.listing_tick();
        self.rounds_tick();
        // Keeps the record and the server's definitions current while they are used.
        let age = self.record.as_ref().map(|(_, read_at)| self.now.saturating_sub(*read_at));
        let used = self.now.saturating_sub(self.used_at) < RECORD_LIFETIME;
        let asked = self.loading_since.map(|since| self.now.saturating_sub(since));
        if used
            && age.is_some_and(|age| age >= RECORD_LIFETIME * 3 / 4)
            && asked.is_none_or(|asked| asked >= RECORD_LIFETIME / 6)
        {
            self.load_record();
            self.observe();
        }
    }
}
