//! Later rounds: facts that a client adds to a call that was already decided.

use std::collections::HashSet;

use authority_crypto::{hex, random};
use serde_json::{Value, json};

use super::{
    Relay,
    pending::{Purpose, WaitingAnswer},
};
use crate::mcp::{
    call::{Call, Kind, Stage},
    decision::Hold,
    event::{Action, CallId, Outcome},
    message::{INVALID_PARAMS, Id, Response},
    record::ToolRecord,
    reply,
    state::{CallState, LIFETIME, StateKind, call_digest},
};

/// How later input for a call is treated.
#[derive(Clone, Copy, PartialEq)]
enum Rounds {
    Ask,
    Pass,
    Refuse,
}

impl Relay {
    /// A request that continues an earlier one.
    pub(super) fn later_round(&mut self, mut call: Call) {
        let Some(id) = call.id().cloned() else { return };
        let text = call.params.get("requestState").and_then(Value::as_str);
        let state = text.and_then(|text| self.seal.open(text));
        let state = state.filter(|state| self.is_for(state, &call));
        let Some(state) = state else {
            return self.refuse(&id, INVALID_PARAMS, "`requestState` is not valid for this call");
        };
        let is_used = !state.nonce.is_empty() && self.open_rounds.remove(&state.nonce).is_none();
        if is_used {
            return self.refuse(&id, INVALID_PARAMS, "`requestState` was already used");
        }
        let input = call.params.remove("inputResponses");
        call.params.remove("requestState");
        call.round = state.round;
        call.earlier.clone_from(&state.decisions);
        match state.kind {
            StateKind::Hold { decision_id, approval_id, verify_url, began_at } => {
                // What the client answered is not the approval, and is not for the server.
                call.held_since = Some(began_at);
                let approval_id = Some(approval_id);
                call.resumes =
                    Some(Hold { decision_id, approval_id, verify_url, ..Hold::default() });
                call.input = state.input;
            }
            StateKind::Round => {
                call.round = 0;
                call.input = Some(input.unwrap_or_default());
            }
        }
        let upstream = state.upstream.map(|theirs| ("requestState".to_owned(), theirs));
        let input = call.input.clone().filter(|input| !input.is_null());
        let input = input.map(|input| ("inputResponses".to_owned(), input));
        call.params.extend(upstream.into_iter().chain(input));
        call.line = reply::request(&id, "tools/call", &call.params);
        let call = self.add(call);
        self.list_for(Purpose::Call(call));
    }

    fn is_for(&self, state: &CallState, call: &Call) -> bool {
        state.principal == self.settings.asker.agent
            && state.call == call_digest(&call.params)
            && self.now < state.ends_at
    }

    /// The server asks for input before it finishes a call.
    pub(super) fn input_required(&mut self, id: CallId, result: &str) {
        let Some(call) = self.calls.get(&id) else { return };
        let Kind::Tool { id: client, name } = call.kind.clone() else {
            return self.unreadable(id, "the server asks for input");
        };
        let asked = gateway_rest::strict(result.as_bytes(), u8::MAX);
        let Ok(Value::Object(mut asked)) = asked else {
            return self.unreadable(id, "the server's request for input is ambiguous");
        };
        if !matches!(asked.get("inputRequests"), None | Some(Value::Object(_))) {
            return self.unreadable(id, "the server's request for input is ambiguous");
        }
        let requests = asked.get("inputRequests").and_then(Value::as_object);
        let mut methods =
            requests.into_iter().flatten().map(|(_, request)| request["method"].as_str());
        let is_allowed = |method: Option<&str>| match method {
            Some("elicitation/create") => true,
            Some(other) => self.record().is_some_and(|record| record.allows(other)),
            None => false,
        };
        let all_allowed = methods.all(is_allowed);
        if self.rounds_of(&name) == Rounds::Refuse || !all_allowed {
            let why = "Denied: the server asks for input that the gateway does not pass on.";
            return self.finish(id, Outcome::Abandoned, "input refused", |_, client| {
                reply::result(client, &reply::failed_call(true, why, None))
            });
        }
        let Some(sealed) = self.sealed_round(id, asked.remove("requestState")) else {
            return self.unavailable(id, "no random bytes");
        };
        asked.insert("requestState".to_owned(), json!(sealed));
        self.send(Action::ToClient(reply::result(&client, &Value::Object(asked))));
        self.calls.remove(&id);
        self.send(Action::Forget(id));
    }

    fn sealed_round(&mut self, id: CallId, upstream: Option<Value>) -> Option<String> {
        let call = self.calls.get(&id)?;
        let nonce = hex(&random::<16>().ok()?);
        let mut params = call.params.clone();
        params.remove("requestState");
        params.remove("inputResponses");
        let ends_at = self.now.saturating_add(LIFETIME);
        let state = CallState {
            kind: StateKind::Round,
            nonce: nonce.clone(),
            principal: self.settings.asker.agent.clone(),
            call: call_digest(&params),
            round: 0,
            ends_at,
            decisions: call.decisions(),
            upstream,
            input: None,
        };
        let sealed = self.seal.seal(&state).ok()?;
        self.open_rounds.insert(nonce, (state.decisions, ends_at));
        Some(sealed)
    }

    pub(super) fn rounds_tick(&mut self) {
        let now = self.now;
        let over = self.open_rounds.iter().filter(|(_, (_, ends_at))| now >= *ends_at);
        let over: Vec<_> = over.map(|(nonce, _)| nonce.clone()).collect();
        for nonce in over {
            let Some((decisions, _)) = self.open_rounds.remove(&nonce) else { continue };
            for decision in decisions {
                self.abandon(decision, "the client did not continue");
            }
        }
    }

    /// Whether the server may ask the client for input: calls are running, and each takes input.
    pub(super) fn may_elicit(&self) -> bool {
        let running = self.running();
        let takes_input = |id: &CallId| match self.calls.get(id).map(|call| &call.kind) {
            Some(Kind::Tool { name, .. }) => self.rounds_of(name) != Rounds::Refuse,
            _ => true,
        };
        !running.is_empty() && running.iter().all(takes_input)
    }

    /// The client answers a request of the server: a round of the calls that the server works on.
    pub(super) fn client_response(&mut self, response: Response) {
        let Some(method) = self.server_requests.remove(&response.id) else {
            return self
                .warn("dropped an answer of the client that no request of the server waits for");
        };
        let is_input = method == "elicitation/create" && response.result.is_some();
        if !is_input {
            return self.send(Action::ToServer(response.line));
        }
        if !self.may_elicit() {
            // No decision on a running call would cover it.
            return self.refuse_answer(&response.id);
        }
        let mut waits_for = HashSet::new();
        for running in self.running() {
            let Some(call) = self.calls.get(&running) else { continue };
            let rounds = match &call.kind {
                Kind::Tool { name, .. } => self.rounds_of(&name.clone()),
                _ => Rounds::Ask,
            };
            if rounds == Rounds::Pass {
                continue;
            }
            let Some(mut question) = call.question.clone() else { continue };
            let input = response.result.clone().unwrap_or_default();
            question["context"]["input_responses"] = json!({ "elicitation": input });
            let kind = Kind::Answer { request: response.id.clone(), of: running };
            let mut answer = Call::new(kind, call.params.clone(), Vec::new());
            answer.question = Some(question);
            waits_for.insert(self.add(answer));
        }
        if waits_for.is_empty() {
            return self.send(Action::ToServer(response.line));
        }
        let asks: Vec<_> = waits_for.iter().copied().collect();
        self.answers.insert(response.id, WaitingAnswer { line: response.line, waits_for });
        for call in asks {
            self.ask(call, None);
        }
    }

    /// A decision permits the client's answer. It is forwarded with the last permission.
    pub(super) fn answer_permitted(&mut self, call: CallId, request: &Id) {
        let Some(waiting) = self.answers.get_mut(request) else { return };
        waiting.waits_for.remove(&call);
        if waiting.waits_for.is_empty() {
            let line = self.answers.remove(request).map(|waiting| waiting.line).unwrap_or_default();
            self.send(Action::ToServer(line));
        }
    }

    /// The client's answer is not permitted: the call that it was for ends.
    pub(super) fn answer_denied(&mut self, request: &Id, of: CallId, sentence: &str) {
        if self.answers.remove(request).is_some() {
            self.refuse_answer(request);
        }
        self.cancel(of, sentence, "its input was not permitted");
    }

    fn refuse_answer(&mut self, request: &Id) {
        let result = json!({"action": "cancel"});
        self.send(Action::ToServer(reply::result(request, &result)));
    }

    /// Ends the answers of a call that has ended, with the same outcome.
    pub(super) fn end_answers(&mut self, of: CallId, outcome: Outcome, detail: &str) {
        let is_of =
            |call: &Call| matches!(&call.kind, Kind::Answer { of: call, .. } if *call == of);
        let ids: Vec<_> =
            self.calls.iter().filter(|(_, call)| is_of(call)).map(|(id, _)| *id).collect();
        for id in ids {
            let Some(call) = self.calls.remove(&id) else { continue };
            self.send(Action::Forget(id));
            let outcome = if call.stage == Stage::Forwarded { outcome } else { Outcome::Abandoned };
            for decision_id in call.decisions() {
                self.send(Action::Report { decision_id, outcome, detail: detail.to_owned() });
            }
            if let Kind::Answer { request, .. } = &call.kind
                && self.answers.remove(request).is_some()
            {
                self.refuse_answer(request);
            }
        }
    }

    fn rounds_of(&self, tool: &str) -> Rounds {
        let tool = self.record().and_then(|record| record.tool(tool));
        match tool.map(|tool| (tool.mcp.rounds.as_deref(), reads_only(tool))) {
            Some((Some("pass"), true)) => Rounds::Pass,
            Some((Some("ask") | None, _) | (Some("pass"), false)) => Rounds::Ask,
            _ => Rounds::Refuse,
        }
    }
}

/// Whether the pinned definition says that the tool only reads.
fn reads_only(tool: &ToolRecord) -> bool {
    let annotations =
        tool.mcp.definition.as_ref().and_then(|definition| definition.get("annotations"));
    annotations.is_some_and(|annotations| annotations["readOnlyHint"] == true)
}
