//! The messages that the relay itself writes.

use serde_json::{Map, Value, json};

use crate::mcp::message::Id;

/// A JSON-RPC error. An unknown id becomes null.
pub(crate) fn error(id: Option<&Id>, code: i32, message: &str) -> Vec<u8> {
    let id = id.map_or(Value::Null, Id::value);
    text(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

pub(crate) fn result(id: &Id, result: &Value) -> Vec<u8> {
    text(&json!({"jsonrpc": "2.0", "id": id.value(), "result": result}))
}

pub(crate) fn request(id: &Id, method: &str, params: &Map<String, Value>) -> Vec<u8> {
    text(&json!({"jsonrpc": "2.0", "id": id.value(), "method": method, "params": params}))
}

pub(crate) fn notification(method: &str, params: &Value) -> Vec<u8> {
    text(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// The result of a tool call that was not made, or not finished: the model reads the text.
pub(crate) fn failed_call(stateless: bool, sentence: &str, meta: Option<Value>) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": sentence}], "isError": true});
    if stateless {
        result["resultType"] = json!("complete");
    }
    if let Some(meta) = meta {
        result["_meta"] = meta;
    }
    result
}

pub(crate) fn text(message: &Value) -> Vec<u8> {
    message.to_string().into_bytes()
}
