//! A relay with a service and a server that answer as a test says, without I/O.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, json};

use crate::mcp::{
    decision::{Decision, Denial, Hold, Permit},
    event::{Action, CallId, Event, Grants, Outcome},
    question::Asker,
    relay::{Relay, Settings},
    tests::signing::{AGENT, definition, record, server_record},
};

pub(super) struct World {
    pub(super) relay: Relay,
    pub(super) now: Duration,
    /// The service's record of the server; `None`: the service is down.
    pub(super) record: Option<Value>,
    pub(super) grants: Grants,
    /// The resources that the service knows, by their external id.
    pub(super) resources: HashMap<String, String>,
    /// The tools as the server lists them; `None`: it does not answer.
    pub(super) tools: Option<Vec<Value>>,
    /// The messages to the client.
    pub(super) client: Vec<Value>,
    /// The messages to the server, except the relay's own requests.
    pub(super) server: Vec<Vec<u8>>,
    pub(super) asked: Vec<(CallId, Value, String)>,
    pub(super) watched: Vec<(CallId, String)>,
    pub(super) followed: Vec<(CallId, String)>,
    pub(super) reports: Vec<(String, Outcome, String)>,
    pub(super) observed: Vec<String>,
    /// The messages to the person who runs the command.
    pub(super) warnings: Vec<String>,
    pub(super) begun: Vec<String>,
    /// Whether the beginning of each call is recorded at once.
    pub(super) records: bool,
    pub(super) kills: usize,
    next_decision: usize,
}

pub(super) fn settings() -> Settings {
    Settings {
        asker: Asker {
            server: "files".to_owned(),
            agent: AGENT.to_owned(),
            purpose: Some("work".to_owned()),
            redaction_key: None,
        },
        hold_budget: Duration::from_secs(7 * 60),
        kill_on_stop: false,
        permit_to_tool: false,
        denial_is_error: false,
    }
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(settings())
    }

    pub(super) fn with(settings: Settings) -> Self {
        let mut world = Self {
            relay: Relay::new(settings).unwrap(),
            now: Duration::ZERO,
            record: Some(record(&["touch", "read"])),
            grants: Grants { permitted: vec!["mcp.files.*".to_owned()], denied: Vec::new() },
            resources: HashMap::new(),
            tools: Some(vec![definition("touch"), definition("read")]),
            client: Vec::new(),
            server: Vec::new(),
            asked: Vec::new(),
            watched: Vec::new(),
            followed: Vec::new(),
            reports: Vec::new(),
            observed: Vec::new(),
            warnings: Vec::new(),
            begun: Vec::new(),
            records: true,
            kills: 0,
            next_decision: 0,
        };
        world.perform(vec![Action::LoadRecord]);
        world.client(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        world.server.clear();
        world
    }

    pub(super) fn event(&mut self, event: Event) {
        let actions = self.relay.handle(event, self.now);
        self.perform(actions);
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::ToClient(line) => self.client.push(serde_json::from_slice(&line).unwrap()),
                Action::ToServer(line) => self.take_server_line(line),
                Action::LoadRecord => {
                    let read = self.record.as_ref().map(server_record).ok_or("down".to_owned());
                    self.event(Event::Record(read));
                }
                Action::LoadGrants => {
                    let read = self.record.as_ref().map(|_| self.grants.clone());
                    self.event(Event::Grants(read.ok_or("down".to_owned())));
                }
                Action::LookUp { call, named } => {
                    let found = self.record.as_ref().ok_or("down".to_owned());
                    let found = found.map(|_| self.resources.get(&named.external_id).cloned());
                    self.event(Event::Resource(call, found));
                }
                Action::Ask { call, question, key } => self.asked.push((call, question, key)),
                Action::Watch { call, decision_id } => self.watched.push((call, decision_id)),
                Action::Follow { call, decision_id } => self.followed.push((call, decision_id)),
                Action::Begin { call, decision_id, .. } => {
                    self.begun.push(decision_id);
                    if self.records {
                        self.event(Event::Begun(call, Ok(())));
                    }
                }
                Action::Report { decision_id, outcome, detail } => {
                    self.reports.push((decision_id, outcome, detail));
                }
                Action::Observe(definitions) => {
                    let names =
                        definitions.iter().map(|one| one["name"].as_str().unwrap().to_owned());
                    self.observed.extend(names);
                }
                Action::Kill(_) => self.kills += 1,
                Action::Warn(message) => self.warnings.push(message),
                Action::Forget(_) => {}
            }
        }
    }

    fn take_server_line(&mut self, line: Vec<u8>) {
        let message: Value = serde_json::from_slice(&line).unwrap();
        let is_own = message["id"].as_str().is_some_and(|id| id.starts_with("agent-authority-"));
        if !is_own {
            return self.server.push(line);
        }
        assert_eq!(message["method"], "tools/list");
        if let Some(tools) = self.tools.clone() {
            self.server(
                &json!({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}}),
            );
        }
    }

    pub(super) fn client(&mut self, message: &Value) {
        self.event(Event::Client(message.to_string().into_bytes()));
    }

    pub(super) fn server(&mut self, message: &Value) {
        self.event(Event::Server(message.to_string().into_bytes()));
    }

    /// Lets time pass, in steps of a second.
    pub(super) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.event(Event::Tick);
        }
    }

    pub(super) fn call(&mut self, id: i64, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        self.client(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    /// Answers the last question.
    pub(super) fn decide(&mut self, decision: Decision) {
        let call = self.asked.last().unwrap().0;
        self.event(Event::Decided(call, Ok(decision)));
    }

    /// Permits the last question. Returns the decision's id.
    pub(super) fn permit(&mut self) -> String {
        self.next_decision += 1;
        let decision_id = format!("permit-{}", self.next_decision);
        let permit = Permit {
            decision_id: decision_id.clone(),
            valid_for: Duration::from_secs(30),
            obligations: vec!["audit.emit".to_owned()],
            is_approved: false,
            proof: json!({"record": "{}"}),
        };
        self.decide(Decision::Permitted(permit));
        decision_id
    }

    /// Permits the last question, and opens its watch. Returns the decision's id.
    pub(super) fn permit_and_watch(&mut self) -> String {
        let decision_id = self.permit();
        self.watching();
        decision_id
    }

    pub(super) fn watching(&mut self) {
        let call = self.watched.last().unwrap().0;
        self.event(Event::Watching(call));
    }

    pub(super) fn hold(&mut self) -> Hold {
        self.next_decision += 1;
        let hold = Hold {
            decision_id: format!("hold-{}", self.next_decision),
            reason_code: "oversight_required".to_owned(),
            approval_id: Some("svc:approval:1".to_owned()),
            verify_url: "https://authority.example/receipts/1".to_owned(),
            ..Hold::default()
        };
        self.decide(Decision::Held(hold.clone()));
        hold
    }

    pub(super) fn deny(&mut self, sentence: &str) {
        let denial =
            Denial { reason_code: "constraint_exceeded".to_owned(), sentence: sentence.to_owned() };
        self.decide(Decision::Denied(denial));
    }

    pub(super) fn answer(&self) -> &Value {
        self.client.last().unwrap()
    }

    /// The text that the model reads.
    pub(super) fn told(&self) -> &str {
        let result = &self.answer()["result"];
        assert_eq!(result["isError"], true, "{}", self.answer());
        result["content"][0]["text"].as_str().unwrap()
    }

    pub(super) fn forwarded(&self) -> Vec<Value> {
        self.server.iter().map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    #[track_caller]
    pub(super) fn assert_nothing_forwarded(&self) {
        let calls = self.forwarded();
        assert!(!calls.iter().any(|message| message["method"] == "tools/call"), "{calls:?}");
        assert!(self.begun.is_empty());
    }
}
