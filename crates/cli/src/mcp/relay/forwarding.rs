//! Permitted calls: forwarded, stopped, answered and reported.

use std::time::Duration;

use authority_crypto::sha256;
use authority_evidence::digest_text;
use serde_json::{Map, Value, json};

use super::Relay;
use crate::mcp::{
    call::{Call, Kind, Stage},
    decision::Permit,
    event::{Action, CallId, Outcome},
    json::object,
    message::{DENIED, INTERNAL, Id},
    reply,
};

/// How long a stopped call may take to end before the server is ended.
const GRACE: Duration = Duration::from_secs(2);

impl Relay {
    /// The permission of a call is watched: its beginning is recorded.
    pub(super) fn watched(&mut self, id: CallId) {
        let Some(permit) = self.beginning(id, &Stage::Opening) else { return };
        let Permit { decision_id, is_approved, .. } = permit;
        self.send(Action::Begin { call: id, decision_id, is_approved });
        if let Some(call) = self.calls.get_mut(&id) {
            call.stage = Stage::Beginning;
        }
    }

    /// The beginning of a call is recorded: the call is forwarded, if its permission lasts.
    pub(super) fn begun(&mut self, id: CallId, begun: Result<(), String>) {
        let Some(permit) = self.beginning(id, &Stage::Beginning) else { return };
        match begun {
            Ok(()) => {}
            Err(why) if permit.is_approved => {
                // The approval can't be used again: its outcome must survive a crash.
                return self.deny(
                    id,
                    &format!("Denied: the use of the approval can't be recorded: {why}."),
                );
            }
            Err(why) => {
                self.warn(format!("the outcome would not be reported after a crash: {why}"));
            }
        }
        self.forward(id, &permit);
    }

    /// The permission of a call at this stage. After the end of its permission, a call is denied.
    fn beginning(&mut self, id: CallId, stage: &Stage) -> Option<Permit> {
        let permit = self.calls.get(&id).filter(|call| call.stage == *stage)?.permit.clone()?;
        if self.may_begin(id) {
            return Some(permit);
        }
        self.deny(id, "Denied: the permission ended before the call could begin.");
        None
    }

    fn forward(&mut self, id: CallId, permit: &Permit) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.stage = Stage::Forwarded;
        let line = match &call.kind {
            Kind::Tool { .. } if self.settings.permit_to_tool => {
                with_permit(&call.line, &permit.proof)
            }
            _ => Some(call.line.clone()),
        };
        let Some(line) = line else {
            return self.unavailable(id, "the permission can't be added to the call");
        };
        match self.calls.get(&id).map(|call| call.kind.clone()) {
            Some(Kind::Answer { request, .. }) => self.answer_permitted(id, &request),
            _ => self.send(Action::ToServer(line)),
        }
    }

    /// The permission of a call cannot be watched: it is not forwarded.
    pub(super) fn unwatched(&mut self, id: CallId, why: &str) {
        let is_open = |call: &Call| call.stage == Stage::Opening;
        if self.calls.get(&id).is_some_and(is_open) {
            self.unavailable(id, &format!("its permission can't be watched: {why}"));
        }
    }

    /// The permission of a call has ended.
    pub(super) fn stopped(&mut self, id: CallId, condition: &str) {
        let Some(call) = self.calls.get(&id) else { return };
        match (&call.kind, &call.stage) {
            (Kind::Answer { of, .. }, _) => {
                let of = *of;
                self.stopped(of, condition);
            }
            (_, Stage::Forwarded) => {
                let sentence = format!(
                    "Stopped ({condition}): cancellation was requested, not confirmed. The server may have acted."
                );
                self.cancel(id, &sentence, "stopped");
            }
            (_, Stage::Opening | Stage::Beginning) => {
                self.deny(id, &format!("Denied: stopped ({condition})."));
            }
            _ => {}
        }
    }

    /// Asks the server to cancel a call, and answers the client.
    pub(super) fn cancel(&mut self, id: CallId, sentence: &str, why: &str) {
        let Some(call) = self.calls.get(&id) else { return };
        let Some(request) = call.id().cloned() else { return };
        let params = json!({"requestId": request.value(), "reason": why});
        self.send(Action::ToServer(reply::notification("notifications/cancelled", &params)));
        self.ended.insert(request);
        if self.settings.kill_on_stop {
            self.send(Action::Kill(GRACE));
        }
        self.finish(id, Outcome::Abandoned, why, |call, id| match call.kind {
            Kind::Tool { .. } => {
                reply::result(id, &reply::failed_call(call.is_stateless(), sentence, None))
            }
            _ => reply::error(Some(id), DENIED, sentence),
        });
    }

    /// The client cancels a call.
    pub(super) fn cancelled_call(&mut self, id: CallId, line: &[u8]) {
        let Some(call) = self.calls.get(&id) else { return };
        if call.is_forwarded() {
            self.ended.extend(call.id().cloned());
            self.send(Action::ToServer(line.to_vec()));
            self.finish(id, Outcome::Abandoned, "the client cancelled", |_, _| Vec::new());
        } else {
            let decisions = call.decisions();
            self.calls.remove(&id);
            self.send(Action::Forget(id));
            for decision in decisions {
                self.abandon(decision, "the client cancelled");
            }
        }
    }

    /// The server answers a forwarded call.
    pub(super) fn answered(&mut self, id: CallId, line: Vec<u8>, result: Option<&str>) {
        let Some(result) = result else {
            return self.finish(
                id,
                Outcome::Failed,
                "the server answered with an error",
                |_, _| line,
            );
        };
        let Some(call) = self.calls.get(&id) else { return };
        let is_tool = matches!(call.kind, Kind::Tool { .. });
        let shown: Vec<_> =
            call.permit.iter().flat_map(|permit| permit.shown_obligations()).collect();
        let shown = (!shown.is_empty()).then(|| json!(shown));
        match Head::read(result) {
            Err(why) => self.unreadable(id, &why),
            Ok(head) if head.input_required => self.input_required(id, result),
            Ok(head) if head.is_task => self.unreadable(id, "the server answered with a task"),
            Ok(head) => {
                let outcome =
                    if is_tool && head.is_error { Outcome::Failed } else { Outcome::Executed };
                let digest = digest_text(&sha256(result.as_bytes()));
                let detail = format!("result {digest}, {} bytes", result.len());
                self.finish(id, outcome, &detail, |_, client| match shown {
                    None => line,
                    Some(shown) => with_obligations(client, result, shown),
                });
            }
        }
    }

    /// The server's answer to a call can't be relayed.
    pub(super) fn unreadable(&mut self, id: CallId, why: &str) {
        let detail = format!("unreadable answer: {why}");
        self.finish(id, Outcome::Failed, &detail, |_, client| {
            reply::error(
                Some(client),
                INTERNAL,
                "the server's answer can't be read; the call may have been made",
            )
        });
    }

    /// Ends a forwarded call: answers the client and reports each of its decisions.
    pub(super) fn finish(
        &mut self,
        id: CallId,
        outcome: Outcome,
        detail: &str,
        reply: impl FnOnce(&Call, &Id) -> Vec<u8>,
    ) {
        let Some(call) = self.calls.remove(&id) else { return };
        let line = call.id().map(|client| reply(&call, client)).filter(|line| !line.is_empty());
        self.out.extend(line.map(Action::ToClient));
        self.end_answers(id, outcome, detail);
        self.send(Action::Forget(id));
        for decision_id in call.decisions() {
            self.send(Action::Report { decision_id, outcome, detail: detail.to_owned() });
        }
    }

    pub(super) fn server_gone(&mut self) {
        let ids: Vec<_> = self.calls.keys().copied().collect();
        for id in ids {
            let Some(call) = self.calls.get(&id) else { continue };
            if matches!(call.kind, Kind::Answer { .. }) {
                continue;
            }
            if call.is_forwarded() {
                self.finish(id, Outcome::Failed, "the server ended", |_, client| {
                    reply::error(
                        Some(client),
                        INTERNAL,
                        "the server ended; the call may have been made",
                    )
                });
            } else {
                self.unavailable(id, "the server ended");
            }
        }
        for id in std::mem::take(&mut self.passing).into_keys() {
            self.refuse(&id, INTERNAL, "the server ended");
        }
    }

    pub(super) fn client_gone(&mut self) {
        let ids: Vec<_> = self.calls.keys().copied().collect();
        for id in ids {
            let decisions = self.calls.remove(&id).map(|call| call.decisions()).unwrap_or_default();
            self.send(Action::Forget(id));
            for decision in decisions {
                self.abandon(decision, "the client ended");
            }
        }
        for (decisions, _) in std::mem::take(&mut self.open_rounds).into_values() {
            for decision in decisions {
                self.abandon(decision, "the client ended");
            }
        }
    }
}

/// The members of a result that the relay has to understand.
struct Head {
    is_error: bool,
    input_required: bool,
    is_task: bool,
}

impl Head {
    /// # Errors
    /// The members can be understood in different ways.
    fn read(result: &str) -> Result<Self, String> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Members {
            is_error: Option<bool>,
            result_type: Option<String>,
            task: Option<serde::de::IgnoredAny>,
        }
        let read: Members = object(result)?;
        let is = |word: &str| read.result_type.as_deref() == Some(word);
        match read.result_type.as_deref() {
            None | Some("complete" | "input_required" | "task") => Ok(Self {
                is_error: read.is_error == Some(true),
                input_required: is("input_required"),
                is_task: is("task") || read.result_type.is_none() && read.task.is_some(),
            }),
            Some(_) => Err("unknown `resultType`".to_owned()),
        }
    }
}

/// Adds the permission to a call, for servers that verify it.
fn with_permit(line: &[u8], proof: &Value) -> Option<Vec<u8>> {
    let mut message: Value = serde_json::from_slice(line).ok()?;
    let params = message.get_mut("params")?.as_object_mut()?;
    let meta = params.entry("_meta").or_insert_with(|| json!({})).as_object_mut()?;
    meta.insert("agent-authority/permit".to_owned(), proof.clone());
    Some(reply::text(&message))
}

/// Adds the warnings of the permission to a result.
fn with_obligations(id: &Id, result: &str, shown: Value) -> Vec<u8> {
    let mut members: Map<String, Value> = serde_json::from_str(result).unwrap_or_default();
    let meta = members.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert("agent-authority/obligations".to_owned(), shown);
    }
    reply::result(id, &Value::Object(members))
}
