//! Calls that wait for people. A response of the client is never the approval.

use std::time::Duration;

use authority_crypto::{hex, random};
use serde_json::{Value, json};

use super::Relay;
use crate::mcp::{
    call::{Era, Kind, Stage},
    decision::Hold,
    event::{Action, CallId},
    reply,
    state::{CallState, LIFETIME, StateKind, call_digest},
};

/// How long one request of a client waits. Clients give up after 60 s.
const ONE_WAIT: Duration = Duration::from_secs(50);
/// The interval of reports of progress.
const PROGRESS: Duration = Duration::from_secs(10);
/// How often a client is asked to come back.
const MOST_ROUNDS: u8 = 9;

impl Relay {
    /// Handles a decision that waits for people.
    pub(super) fn held(&mut self, id: CallId, hold: Hold) {
        let now = self.now;
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.held_since.get_or_insert(now);
        if hold.approval_id.is_none() || hold.nobody_is_eligible {
            return self.end_held(id, &hold);
        }
        let first_by_link = call.round == 0 && call.era == (Era::Stateless { elicits_url: true });
        let is_tool = matches!(call.kind, Kind::Tool { .. });
        let waits_silently = matches!(call.kind, Kind::Answer { .. });
        if first_by_link && is_tool {
            self.ask_to_come_back(id, &hold);
        } else if waits_silently
            || call.is_stateless() && is_tool
            || call.progress_token().is_some()
        {
            let approval_id = hold.approval_id.as_deref().unwrap_or_default();
            self.warn(format!("waiting for approval {approval_id}: {}", hold.verify_url));
            self.wait(id, hold);
        } else {
            self.end_held(id, &hold);
        }
    }

    /// Keeps the client's request open.
    pub(super) fn wait(&mut self, id: CallId, hold: Hold) {
        let now = self.now;
        let budget = self.settings.hold_budget;
        let Some(call) = self.calls.get_mut(&id) else { return };
        let ends = call.held_since.get_or_insert(now).saturating_add(budget);
        // The server waits for an answer without a limit of its own.
        let most = if matches!(call.kind, Kind::Answer { .. }) { budget } else { ONE_WAIT };
        let until = ends.min(now.saturating_add(most));
        let decision_id = hold.decision_id.clone();
        call.stage = Stage::Holding { hold, until, next_progress: now };
        self.send(Action::Follow { call: id, decision_id });
        self.holds_tick();
    }

    /// The approval of a held call has another state.
    pub(super) fn approval(&mut self, id: CallId, state: &str) {
        let Some(call) = self.calls.get(&id) else { return };
        let Stage::Holding { hold, .. } = call.stage.clone() else { return };
        match state {
            "approved" => self.ask_with(id, hold.approval_id.unwrap_or_default()),
            "declined" | "expired" | "void" | "used" => {
                self.deny(
                    id,
                    &format!("Denied (approval_{state}): the request for approval is {state}."),
                );
            }
            _ => {}
        }
    }

    pub(super) fn holds_tick(&mut self) {
        let now = self.now;
        let (mut over, mut progress) = (Vec::new(), Vec::new());
        for (id, call) in &mut self.calls {
            let Stage::Holding { hold, until, next_progress } = &mut call.stage else { continue };
            if now >= *until {
                over.push((*id, hold.clone()));
            } else if now >= *next_progress {
                *next_progress = now.saturating_add(PROGRESS);
                let since = call.held_since.map_or(0, |since| now.saturating_sub(since).as_secs());
                let url = hold.verify_url.clone();
                progress.extend(call.progress_token().map(|token| (token.clone(), since, url)));
            }
        }
        for (token, since, url) in progress {
            // The value rises with each report.
            let params = json!({"progressToken": token, "progress": since + 1,
                "message": format!("Waiting for approval: {url}")});
            self.send(Action::ToClient(reply::notification("notifications/progress", &params)));
        }
        for (id, hold) in over {
            self.waited(id, &hold);
        }
    }

    /// The time of one wait is over.
    fn waited(&mut self, id: CallId, hold: &Hold) {
        let budget = self.settings.hold_budget;
        let Some(call) = self.calls.get(&id) else { return };
        let waited = call.held_since.map_or(budget, |since| self.now.saturating_sub(since));
        let is_tool = matches!(call.kind, Kind::Tool { .. });
        if is_tool && call.is_stateless() && call.round < MOST_ROUNDS && waited < budget {
            self.ask_to_come_back(id, hold);
        } else {
            self.end_held(id, hold);
        }
    }

    /// Answers `input_required`: the client asks again with the sealed state. The first time, a client
    /// that can show a link gets the receipt's.
    fn ask_to_come_back(&mut self, id: CallId, hold: &Hold) {
        let Ok(nonce) = self.open_round(id) else {
            return self.unavailable(id, "no random bytes");
        };
        let Some(call) = self.calls.get(&id) else { return };
        let state = CallState {
            kind: StateKind::Hold {
                decision_id: hold.decision_id.clone(),
                approval_id: hold.approval_id.clone().unwrap_or_default(),
                verify_url: hold.verify_url.clone(),
                began_at: call.held_since.unwrap_or(self.now),
            },
            nonce,
            principal: self.settings.asker.agent.clone(),
            call: call_digest(&call.params),
            round: call.round + 1,
            ends_at: self.now.saturating_add(LIFETIME),
            decisions: call.earlier.clone(),
            upstream: call.params.get("requestState").cloned(),
            input: call.input.clone(),
        };
        let Ok(sealed) = self.seal.seal(&state) else {
            return self.unavailable(id, "no random bytes");
        };
        let mut result = json!({"resultType": "input_required", "requestState": sealed});
        if call.round == 0 && call.era == (Era::Stateless { elicits_url: true }) {
            let message = "This call waits for approval. The link shows what is waiting.";
            result["inputRequests"] = json!({"approval": {"method": "elicitation/create",
                "params": {"mode": "url", "url": hold.verify_url, "message": message}}});
        }
        let reply = call.id().map(|id| reply::result(id, &result));
        self.calls.remove(&id);
        self.send(Action::Forget(id));
        self.out.extend(reply.map(Action::ToClient));
    }

    /// Keeps the decisions of a call's earlier rounds, to report them if the client does not come back.
    /// Returns the nonce of its state, which is empty if there are none.
    fn open_round(&mut self, id: CallId) -> Result<String, authority_crypto::Error> {
        let earlier = self.calls.get(&id).map(|call| call.earlier.clone()).unwrap_or_default();
        if earlier.is_empty() {
            return Ok(String::new());
        }
        let nonce = hex(&random::<16>()?);
        let ends_at = self.now.saturating_add(LIFETIME);
        self.open_rounds.insert(nonce.clone(), (earlier, ends_at));
        Ok(nonce)
    }

    /// Answers that the call waits. The same call asked again is permitted once it is approved.
    fn end_held(&mut self, id: CallId, hold: &Hold) {
        let receipt = &hold.verify_url;
        let sentence = match &hold.approval_id {
            None => format!(
                "Held ({}): no approval helps, ask again later: {receipt}",
                hold.reason_code
            ),
            Some(_) if hold.nobody_is_eligible => {
                format!("Held for approval, but no registered person can approve it: {receipt}")
            }
            Some(_) => format!("Held for approval. Ask again after it is granted: {receipt}"),
        };
        self.end(id, &sentence, Some(hold_meta(hold)));
    }
}

fn hold_meta(hold: &Hold) -> Value {
    json!({"agent-authority/hold": {"approval_id": hold.approval_id, "decision_id": hold.decision_id,
        "verify_url": hold.verify_url, "retry_after_ms": 5000}})
}
