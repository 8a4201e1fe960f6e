//! Messages of the server.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::Relay;
use crate::mcp::{
    call::Call,
    definition::instructions_digest,
    event::Action,
    json::object,
    message::{INTERNAL, Id, UNKNOWN_METHOD},
    reply,
    text::Shown,
};

/// The deepest nesting of an introduction.
const LEVELS: u8 = 64;

/// The members of a message. Two members with one name are an error.
#[derive(Deserialize)]
struct Head<'a> {
    id: Option<Value>,
    method: Option<String>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Relay {
    pub(super) fn server_line(&mut self, line: Vec<u8>) {
        let read = std::str::from_utf8(&line).map_err(|error| error.to_string());
        let read = read.and_then(object::<Head<'_>>);
        let head = match read {
            Ok(head) => head,
            Err(why) => {
                self.warn(format!("dropped a message of the server that can't be read: {why}"));
                return self.unreadable_answer(&line);
            }
        };
        let id = head.id.as_ref().and_then(Id::of);
        let kinds = [head.method.is_some(), head.result.is_some(), head.error.is_some()];
        let is_clear =
            kinds.iter().filter(|is| **is).count() == 1 && head.id.is_some() == id.is_some();
        if !is_clear || line.contains(&b'\r') {
            self.warn("dropped a message of the server that parsers may read differently");
            return self.unreadable_answer(&line);
        }
        match (head.method, id) {
            (Some(method), Some(id)) => self.server_request(id, method, line),
            (Some(method), None) => self.server_notification(&method, line),
            (None, Some(id)) => {
                let result = head.result.map(|result| result.get().to_owned());
                let result = result.filter(|_| head.error.is_none());
                self.server_response(&id, line, result.as_deref());
            }
            (None, None) => self.warn("dropped a message of the server without id and method"),
        }
    }

    /// The answer to a call, if only its id can be read, ends the call.
    fn unreadable_answer(&mut self, line: &[u8]) {
        #[derive(Deserialize)]
        struct OnlyId {
            id: Value,
        }
        let id = serde_json::from_slice::<OnlyId>(line).ok().and_then(|only| Id::of(&only.id));
        if let Some(id) = id.as_ref().filter(|id| self.passing.remove(id).is_some()) {
            let why = "the server's answer can't be read";
            self.send(Action::ToClient(reply::error(Some(id), INTERNAL, why)));
        }
        let call = id.and_then(|id| self.call_of(&id));
        if let Some(call) = call.filter(|call| self.calls.get(call).is_some_and(Call::is_forwarded))
        {
            self.unreadable(call, "not JSON of one meaning");
        }
    }

    fn server_request(&mut self, id: Id, method: String, line: Vec<u8>) {
        let is_allowed = match method.as_str() {
            "ping" => true,
            // Its answer is decided as a round of a call.
            "elicitation/create" => self.may_elicit(),
            other => self.record().is_some_and(|record| record.allows(other)),
        };
        if is_allowed && !self.server_requests.contains_key(&id) && !self.answers.contains_key(&id)
        {
            self.server_requests.insert(id, method);
            self.send(Action::ToClient(line));
        } else {
            let why = "the gateway does not allow this request";
            self.warn(format!("refused the server's request `{}`", Shown(&method)));
            self.send(Action::ToServer(reply::error(Some(&id), UNKNOWN_METHOD, why)));
        }
    }

    fn server_notification(&mut self, method: &str, line: Vec<u8>) {
        if !method.starts_with("notifications/") {
            return self.warn(format!("dropped the server's notification `{}`", Shown(method)));
        }
        self.send(Action::ToClient(line));
        if method == "notifications/tools/list_changed" {
            self.load_record();
            self.observe();
        }
    }

    fn server_response(&mut self, id: &Id, line: Vec<u8>, result: Option<&str>) {
        if self.takes_page(id, result) || self.ended.remove(id) {
            return;
        }
        if let Some(method) = self.passing.remove(id) {
            let line = match (method.as_str(), result) {
                ("initialize" | "server/discover", Some(result)) => match self.introduced(result) {
                    Ok(None) => line,
                    Ok(Some(result)) => reply::result(id, &result),
                    Err(why) => reply::error(
                        Some(id),
                        INTERNAL,
                        &format!("the server's introduction: {why}"),
                    ),
                },
                _ => line,
            };
            return self.send(Action::ToClient(line));
        }
        let call =
            self.call_of(id).filter(|call| self.calls.get(call).is_some_and(Call::is_forwarded));
        match call {
            Some(call) => self.answered(call, line, result),
            None => self.warn("dropped an answer of the server that no request waits for"),
        }
    }

    /// Removes unpinned parts of the server's introduction; `None` if it stays as it is.
    fn introduced(&mut self, result: &str) -> Result<Option<Value>, String> {
        let mut result = gateway_rest::strict(result.as_bytes(), LEVELS)?;
        let pinned = self.record().and_then(|record| record.mcp.instructions_digest.clone());
        let text = result.get("instructions").and_then(Value::as_str);
        let is_pinned = text.is_none_or(|text| Some(instructions_digest(text)) == pinned);
        let members = result.as_object_mut().ok_or("it is not an object")?;
        let mut changed = false;
        if !is_pinned || members.get("instructions").is_some_and(|text| !text.is_string()) {
            changed |= members.remove("instructions").is_some();
            self.warn("the server's instructions are not pinned, and are not shown to the client");
        }
        // The gateway does not support tasks: a client that saw them would use them.
        let capabilities = members.get_mut("capabilities").and_then(Value::as_object_mut);
        if let Some(capabilities) = capabilities {
            changed |= capabilities.remove("tasks").is_some();
            let extensions = capabilities.get_mut("extensions").and_then(Value::as_object_mut);
            changed |=
                extensions.is_some_and(|all| all.remove("io.modelcontextprotocol/tasks").is_some());
        }
        Ok(changed.then_some(result))
    }
}
