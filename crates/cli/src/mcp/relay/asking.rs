//! Decision requests for calls, and the decisions.

use std::time::Duration;

use authority_crypto::{hex, random};
use serde_json::{Value, json};

use super::{Relay, pending::Purpose};
use crate::mcp::{
    call::{Kind, Stage},
    decision::{Decision, Hold, Permit},
    event::{Action, AskFailure, CallId, Outcome},
    message::{DENIED, INTERNAL, INVALID_PARAMS},
    question::resource_name,
    reply,
};

/// The most decision requests for one call: the first, with the ready approval, and after changes.
const MOST_ASKED: u8 = 4;

impl Relay {
    /// Checks the pin of a call's tool, then asks, or continues to wait for people.
    pub(super) fn judge_pin(&mut self, id: CallId) {
        let Some(call) = self.calls.get(&id) else { return };
        let (Stage::Record { seen, cite }, Kind::Tool { name, .. }) =
            (call.stage.clone(), &call.kind)
        else {
            return;
        };
        let Some(record) = self.record().filter(|record| record.is_active()) else {
            self.deny(id, "Denied: the server is not in force.");
            return;
        };
        let Some(tool) = record.tool(name) else {
            // Reported to the service as a new tool, unless the server does not have it either.
            let sentence = "Denied (capability_quarantined): the tool is new, and waits for a person to pin it.";
            if seen.is_some() {
                self.deny(id, sentence);
            } else {
                self.invalid(id, "the server has no such tool");
            }
            return;
        };
        if let Some(sentence) = tool.fault(seen.as_deref()) {
            self.deny(id, &sentence);
            return;
        }
        let (arguments, input) = (call.arguments(), call.input.clone());
        let digest = seen.unwrap_or_default();
        let question = self.settings.asker.tool(tool, &digest, &arguments, input.as_ref());
        let named = resource_name(tool, &arguments);
        let (question, named) = match question.and_then(|question| Ok((question, named?))) {
            Ok(made) => made,
            Err(sentence) => return self.deny(id, &sentence),
        };
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.question = Some(question);
        if let Some(hold) = call.resumes.take().filter(|_| cite.is_none()) {
            return self.wait(id, hold);
        }
        match named {
            None => self.ask(id, cite),
            Some(named) => {
                call.stage = Stage::Resource { cite };
                self.send(Action::LookUp { call: id, named });
            }
        }
    }

    /// Asks about the resource that a call names. Each question has its own look-up.
    pub(super) fn resource_found(&mut self, id: CallId, found: Result<Option<String>, String>) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let Stage::Resource { cite } = call.stage.clone() else { return };
        match (found, &mut call.question) {
            (Ok(Some(resource)), Some(question)) => {
                question["resource_id"] = json!(resource);
                self.ask(id, cite);
            }
            (Err(why), _) => {
                self.unavailable(id, &format!("its resource can't be looked up: {why}"));
            }
            _ => self.deny(
                id,
                "Denied (resource_access_missing): the service has no record of the call's resource.",
            ),
        }
    }

    /// Requests a decision. Each request has its own nonce and its own key.
    pub(super) fn ask(&mut self, id: CallId, cite: Option<String>) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        if call.question.is_none() {
            let made = match &call.kind {
                Kind::Method { name, .. } => self.settings.asker.method(name, &call.params),
                _ => Err("Denied: the call has no question.".to_owned()),
            };
            match made {
                Ok(question) => call.question = Some(question),
                Err(sentence) => return self.deny(id, &sentence),
            }
        }
        let (Ok(nonce), Ok(key)) = (random::<16>(), random::<16>()) else {
            return self.unavailable(id, "no random bytes");
        };
        call.asked += 1;
        call.asked_at = self.now;
        call.stage = Stage::Asking;
        let mut question = call.question.clone().unwrap_or_default();
        question["client_nonce"] = json!(hex(&nonce));
        if let Some(approval) = cite {
            question["approval_id"] = json!(approval);
        }
        self.send(Action::Ask { call: id, question, key: uuid(key) });
    }

    pub(super) fn decided(&mut self, id: CallId, decided: Result<Decision, AskFailure>) {
        let stage = self.calls.get(&id).map(|call| call.stage.clone());
        if stage != Some(Stage::Asking) {
            // The call is gone. Its permission is not used.
            if let Ok(Decision::Permitted(permit)) = decided {
                self.abandon(permit.decision_id, "the client had cancelled");
            }
            return;
        }
        match decided {
            Ok(Decision::Permitted(permit)) => self.permitted(id, permit),
            Ok(Decision::Held(hold)) => self.asked_people(id, hold),
            Ok(Decision::Denied(denial)) => {
                if denial.reason_code == "tool_definition_changed"
                    || denial.reason_code == "capability_quarantined"
                {
                    self.load_record();
                }
                self.deny(id, &denial.sentence);
            }
            Err(AskFailure::Refused(why)) => self.deny(id, &format!("Denied: {why}.")),
            Err(AskFailure::Unavailable(why)) => self.unavailable(id, &why),
        }
    }

    fn permitted(&mut self, id: CallId, permit: Permit) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let decision_id = permit.decision_id.clone();
        call.permit = Some(permit);
        call.stage = Stage::Opening;
        self.send(Action::Watch { call: id, decision_id });
    }

    fn asked_people(&mut self, id: CallId, hold: Hold) {
        let ready = hold.ready_approval_id.clone();
        let asked = self.calls.get(&id).map_or(0, |call| call.asked);
        match ready {
            // The approval is there: it only has to be cited.
            Some(approval) if asked < MOST_ASKED => self.ask(id, Some(approval)),
            _ => self.held(id, hold),
        }
    }

    /// Asks again with the approval, after another look at the server's definition.
    pub(super) fn ask_with(&mut self, id: CallId, approval: String) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        if call.asked >= MOST_ASKED {
            return self.deny(id, "Denied: the approval no longer permits this call.");
        }
        if matches!(call.kind, Kind::Tool { .. }) {
            call.stage = Stage::Listing { cite: Some(approval) };
            self.list_for(Purpose::Call(id));
        } else {
            self.ask(id, Some(approval));
        }
    }

    /// Whether the permission of a call still permits to begin.
    pub(super) fn may_begin(&self, id: CallId) -> bool {
        let Some(call) = self.calls.get(&id) else { return false };
        let valid_for = call.permit.as_ref().map_or(Duration::ZERO, |permit| permit.valid_for);
        self.now < call.asked_at.saturating_add(valid_for)
    }

    /// Ends a call that is not permitted, with a sentence for the model.
    pub(super) fn deny(&mut self, id: CallId, sentence: &str) {
        self.end(id, sentence, None);
    }

    /// Ends a call before it is forwarded. An answer to the server ends the call that it was for.
    pub(super) fn end(&mut self, id: CallId, sentence: &str, meta: Option<Value>) {
        let Some(call) = self.calls.remove(&id) else { return };
        for decision in call.decisions() {
            self.abandon(decision, "the call was not made");
        }
        self.send(Action::Forget(id));
        match &call.kind {
            Kind::Tool { id, .. } if !self.settings.denial_is_error => {
                let result = reply::failed_call(call.is_stateless(), sentence, meta);
                self.send(Action::ToClient(reply::result(id, &result)));
            }
            Kind::Tool { id, .. } | Kind::Method { id, .. } => self.refuse(id, DENIED, sentence),
            Kind::Answer { request, of } => self.answer_denied(request, *of, sentence),
        }
    }

    /// Ends a call that could not be decided.
    pub(super) fn unavailable(&mut self, id: CallId, why: &str) {
        self.fail_with(id, INTERNAL, &format!("the call was not decided: {why}"));
    }

    fn invalid(&mut self, id: CallId, why: &str) {
        self.fail_with(id, INVALID_PARAMS, why);
    }

    fn fail_with(&mut self, id: CallId, code: i32, why: &str) {
        let Some(call) = self.calls.remove(&id) else { return };
        for decision in call.decisions() {
            self.abandon(decision, "the call was not made");
        }
        self.send(Action::Forget(id));
        match &call.kind {
            Kind::Tool { id, .. } | Kind::Method { id, .. } => self.refuse(id, code, why),
            Kind::Answer { request, of } => self.answer_denied(request, *of, why),
        }
    }

    pub(super) fn abandon(&mut self, decision_id: String, why: &str) {
        self.send(Action::Report {
            decision_id,
            outcome: Outcome::Abandoned,
            detail: why.to_owned(),
        });
    }
}

/// Formats random bytes as a UUID of version 4.
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let digits = hex(&bytes);
    let part = |from, to| digits.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}
