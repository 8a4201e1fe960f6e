//! Reads JSON-RPC messages of MCP strictly.

use serde_json::{Map, Value};

use crate::mcp::{names, text::Shown};

/// The largest message of a client, in bytes.
pub(crate) const LARGEST: usize = 200 * 1024;
/// The deepest nesting of a call's arguments. The context of a question has one level more.
pub(crate) const ARGUMENT_LEVELS: u8 = 31;
/// The deepest nesting of a message: arguments are the third level.
const LEVELS: u8 = ARGUMENT_LEVELS + 2;

pub(crate) const INVALID_REQUEST: i32 = -32600;
pub(crate) const UNKNOWN_METHOD: i32 = -32601;
pub(crate) const INVALID_PARAMS: i32 = -32602;
pub(crate) const INTERNAL: i32 = -32603;
pub(crate) const DENIED: i32 = -32001;

/// A message of a client.
#[derive(Debug)]
pub(crate) enum Message {
    Request(Request),
    Notification { method: String, params: Map<String, Value> },
    Response(Response),
}

/// A request of a client, with its bytes as received.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
    pub(crate) line: Vec<u8>,
}

/// A client's response to a request of the server.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) id: Id,
    /// `None` if it is an error.
    pub(crate) result: Option<Value>,
    pub(crate) line: Vec<u8>,
}

/// The id of a request: a text or an integer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Id {
    Text(String),
    Number(i64),
}

impl Id {
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Number(number) => number.as_i64().map(Self::Number),
            _ => None,
        }
    }

    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Number(number) => Value::from(*number),
        }
    }
}

/// Why a message is refused, with the id to answer if it is known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) id: Option<Id>,
    pub(crate) code: i32,
    pub(crate) why: String,
}

impl Message {
    /// Reads a line of a client.
    ///
    /// # Errors
    /// The line is not a message, or parsers could understand it differently.
    pub(crate) fn read(line: &[u8]) -> Result<Self, Refused> {
        let refused = |code, why: String| Refused { id: id_in(line), code, why };
        if line.len() > LARGEST {
            return Err(refused(INVALID_PARAMS, format!("a message has at most {LARGEST} bytes")));
        }
        if line.contains(&b'\r') {
            // A server may read it as the end of a line, and the rest as another message.
            return Err(refused(INVALID_REQUEST, "a message has no carriage return".to_owned()));
        }
        if line.trim_ascii_start().first() == Some(&b'[') {
            return Err(refused(INVALID_REQUEST, "batches are not supported".to_owned()));
        }
        let value =
            gateway_rest::strict(line, LEVELS).map_err(|why| refused(INVALID_PARAMS, why))?;
        if let Some(name) = names::ambiguous(&value) {
            let why = format!("`{}` and another member differ only in case", Shown(name));
            return Err(refused(INVALID_PARAMS, why));
        }
        Self::of(value, line).map_err(|why| refused(INVALID_REQUEST, why.to_owned()))
    }

    fn of(value: Value, line: &[u8]) -> Result<Self, &'static str> {
        let Value::Object(mut message) = value else { return Err("a message is an object") };
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err("`jsonrpc` must be \"2.0\"");
        }
        let id = match message.get("id") {
            None => None,
            Some(id) => Some(Id::of(id).ok_or("`id` must be a text or an integer")?),
        };
        let Some(method) = message.get("method") else {
            let id = id.ok_or("the message has neither `id` nor `method`")?;
            let result = message.remove("result");
            if result.is_some() == message.contains_key("error") {
                return Err("an answer has either `result` or `error`");
            }
            return Ok(Self::Response(Response { id, result, line: line.to_vec() }));
        };
        let method = method.as_str().ok_or("`method` must be a text")?.to_owned();
        if message.contains_key("result") || message.contains_key("error") {
            return Err("a request has no `result` and no `error`");
        }
        let params = match message.remove("params") {
            None => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Err("`params` must be an object"),
        };
        Ok(match id {
            Some(id) => Self::Request(Request { id, method, params, line: line.to_vec() }),
            None => Self::Notification { method, params },
        })
    }
}

/// Finds the id of a message that is refused. Other members are not interpreted.
fn id_in(line: &[u8]) -> Option<Id> {
    #[derive(serde::Deserialize)]
    struct Head {
        id: Option<Value>,
    }
    let head: Head = serde_json::from_slice(line).ok()?;
    Id::of(&head.id?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (i32, Option<Id>) {
        let refused = Message::read(text.as_bytes()).expect_err(text);
        (refused.code, refused.id)
    }

    #[test]
    fn messages_are_told_apart() {
        let read = |text: &str| Message::read(text.as_bytes()).unwrap();
        let request = read(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":1}}"#);
        let Message::Request(request) = request else { panic!() };
        assert_eq!((request.id, request.params["a"].as_i64()), (Id::Number(7), Some(1)));
        let notification = read(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert!(matches!(notification, Message::Notification { .. }));
        let response = read(r#"{"jsonrpc":"2.0","id":"a","result":{}}"#);
        assert!(matches!(response, Message::Response(Response { result: Some(_), .. })));
        let error = read(r#"{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":""}}"#);
        assert!(matches!(error, Message::Response(Response { result: None, .. })));
    }

    #[test]
    fn a_message_that_parsers_may_read_differently_is_refused_under_its_id() {
        let call =
            |inside: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call",{inside}}}"#);
        let one = Some(Id::Number(1));
        for inside in [
            r#""method":"ping""#,
            r#""params":{"name":"a","name":"b"}"#,
            r#""params":{"name":"a","arguments":{"x":{"y":1,"y":2}}}"#,
            r#""params":{"name":"a","arguments":{"x":"\ud800"}}"#,
            r#""params":{"name":"a","arguments":{"x":1e400}}"#,
            r#""params":{"name":"a","arguments":{"x":9007199254740993}}"#,
        ] {
            assert_eq!(refused(&call(inside)), (INVALID_PARAMS, one.clone()), "{inside}");
        }
        let deep = |levels| "[".repeat(levels) + &"]".repeat(levels);
        let with = |value: String| {
            call(&format!(r#""params":{{"name":"a","arguments":{{"x":{value}}}}}"#))
        };
        assert!(Message::read(with(deep(30)).as_bytes()).is_ok());
        assert_eq!(refused(&with(deep(31))).0, INVALID_PARAMS);
        assert_eq!(refused(&with(format!("\"{}\"", "x".repeat(LARGEST)))), (INVALID_PARAMS, one));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (text, code) in [
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0"}"#, INVALID_REQUEST),
            // Some servers end a line at a carriage return. The second line would be a call.
            (
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\r{}\r}}",
                INVALID_REQUEST,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call"}"#, INVALID_PARAMS),
            ("\"ping\"", INVALID_REQUEST),
            ("ping", INVALID_PARAMS),
            ("{", INVALID_PARAMS),
        ] {
            assert_eq!(refused(text).0, code, "{text}");
        }
        // Two ids: neither is answered.
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#).1, None);
    }
}
