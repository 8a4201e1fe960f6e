//! Messages of the client, by the table of methods.

use serde_json::{Map, Value};

use super::{Relay, pending::Purpose};
use crate::mcp::{
    call::{Call, Era},
    event::Action,
    message::{DENIED, INVALID_PARAMS, INVALID_REQUEST, Id, Message, Request, UNKNOWN_METHOD},
    record::Handling,
    reply,
};

/// The protocol members of a stateless request, which the relay's own requests repeat.
const PROTOCOL: &str = "io.modelcontextprotocol/";

impl Relay {
    pub(super) fn client_line(&mut self, line: &[u8]) {
        self.used_at = self.now;
        match Message::read(line) {
            Ok(Message::Request(request)) => self.request(request),
            Ok(Message::Notification { method, params }) => {
                self.notification(&method, &params, line);
            }
            Ok(Message::Response(response)) => self.client_response(response),
            Err(refused) => {
                let reply = reply::error(refused.id.as_ref(), refused.code, &refused.why);
                self.send(Action::ToClient(reply));
            }
        }
    }

    fn request(&mut self, request: Request) {
        if self.is_in_use(&request.id) {
            self.refuse(&request.id, INVALID_REQUEST, "the id is in use");
            return;
        }
        if let (Era::Stateless { .. }, Some(meta)) =
            (Era::of(&request.params), request.params.get("_meta"))
        {
            let members = meta.as_object().into_iter().flatten();
            let protocol = members.filter(|(name, _)| name.starts_with(PROTOCOL));
            self.meta = Some(protocol.map(|(name, value)| (name.clone(), value.clone())).collect());
            self.ready = true;
        }
        match request.method.as_str() {
            "tools/call" => self.tool_call(request),
            "tools/list" => self.list_tools(request),
            "initialize"
            | "ping"
            | "logging/setLevel"
            | "server/discover"
            | "subscriptions/listen" => {
                self.pass(request);
            }
            method => match group(method) {
                Some(group) => self.other_method(request, group),
                None => self.refuse(
                    &request.id,
                    UNKNOWN_METHOD,
                    &format!("the gateway does not know the method `{method}`, and denies it"),
                ),
            },
        }
    }

    fn is_in_use(&self, id: &Id) -> bool {
        let own = matches!(id, Id::Text(text) if text.starts_with(&self.own));
        own || self.passing.contains_key(id)
            || self.ended.contains(id)
            || self.call_of(id).is_some()
            || self.lists.iter().any(|list| list.id == *id)
    }

    pub(super) fn refuse(&mut self, id: &Id, code: i32, why: &str) {
        self.send(Action::ToClient(reply::error(Some(id), code, why)));
    }

    fn pass(&mut self, request: Request) {
        self.passing.insert(request.id, request.method);
        self.send(Action::ToServer(request.line));
    }

    fn tool_call(&mut self, request: Request) {
        let name = request.params.get("name").and_then(Value::as_str).map(str::to_owned);
        let Some(name) = name else {
            self.refuse(&request.id, INVALID_PARAMS, "`name` must be a text");
            return;
        };
        if !matches!(request.params.get("arguments"), None | Some(Value::Object(_))) {
            self.refuse(&request.id, INVALID_PARAMS, "`arguments` must be an object");
            return;
        }
        if request.params.contains_key("task") {
            self.refuse(&request.id, INVALID_PARAMS, "the gateway does not support tasks");
            return;
        }
        let later = ["requestState", "inputResponses"];
        let is_later = later.iter().any(|name| request.params.contains_key(*name));
        let call = Call::of_tool(request, name);
        if is_later {
            self.later_round(call);
        } else {
            let call = self.add(call);
            self.list_for(Purpose::Call(call));
        }
    }

    fn other_method(&mut self, request: Request, group: &str) {
        let handling = self.fresh_record().map(|record| record.handling(group));
        match handling {
            Some(Handling::Allow) => self.pass(request),
            Some(Handling::Deny) => {
                let why = format!("the server's record denies `{}`", request.method);
                self.refuse(&request.id, DENIED, &why);
            }
            // Without a record it is decided, which is the default.
            Some(Handling::Decide) | None => {
                let call = self.add(Call::of_method(request));
                self.ask(call, None);
            }
        }
    }

    fn notification(&mut self, method: &str, params: &Map<String, Value>, line: &[u8]) {
        match method {
            "notifications/cancelled" => self.cancelled(params, line),
            "notifications/initialized" => {
                self.ready = true;
                self.send(Action::ToServer(line.to_vec()));
                self.observe();
            }
            method if method.starts_with("notifications/") => {
                self.send(Action::ToServer(line.to_vec()));
            }
            method => self.warn(format!("dropped the client's notification `{method}`")),
        }
    }

    fn cancelled(&mut self, params: &Map<String, Value>, line: &[u8]) {
        let Some(id) = params.get("requestId").and_then(Id::of) else { return };
        if let Some(call) = self.call_of(&id) {
            self.cancelled_call(call, line);
        } else if self.passing.remove(&id).is_some() {
            self.ended.insert(id);
            self.send(Action::ToServer(line.to_vec()));
        } else {
            self.lists.retain(|list| list.id != id);
        }
    }
}

/// The group of a method, as the record of a server names it.
fn group(method: &str) -> Option<&'static str> {
    match method.split_once('/')? {
        ("resources", _) => Some("resources"),
        ("prompts", _) => Some("prompts"),
        ("completion", "complete") => Some("completion"),
        _ => None,
    }
}
