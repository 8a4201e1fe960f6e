//! Calls of a kind's operations, with messages of any type.

use prost_reflect::{DynamicMessage, Value as Proto};

use crate::kit::{
    kinds::{Kind, Operation, of_json},
    prelude::*,
};

/// The response of an operation.
pub(crate) struct Answered {
    pub(crate) message: DynamicMessage,
    /// The version of its record, for If-Match.
    pub(crate) version: Option<String>,
}

/// Calls the operation.
///
/// # Errors
/// The errors of the operation.
pub(crate) async fn call(
    view: &View,
    operation: &Operation,
    request: &DynamicMessage,
    headers: &[(&str, &str)],
) -> Result<Answered, Status> {
    let answer = view.calls.send(&operation.rpc, request, headers).await?;
    let message = DynamicMessage::decode(operation.output.clone(), answer.message);
    let message = message.map_err(|_| Status::internal(t::records::UNREADABLE))?;
    let version = answer.headers.get("etag").and_then(|etag| etag.to_str().ok());
    Ok(Answered { message, version: version.map(str::to_owned) })
}

/// Creates a record with these members. A call with the same key takes effect once.
///
/// # Errors
/// The errors of the operation, or a member of a wrong type.
pub(crate) async fn create(
    view: &View,
    kind: &Kind,
    members: Map<String, Value>,
    key: &str,
) -> Result<Answered, Status> {
    let unknown = || Status::unimplemented(t::records::CANNOT_CREATE);
    let operation = kind.maker("create").ok_or_else(unknown)?;
    let wrong = |found: Vec<(String, String)>| {
        let found = found.into_iter().map(|(name, problem)| format!("{name}: {problem}"));
        Status::invalid_argument(found.collect::<Vec<_>>().join("; "))
    };
    let record = of_json(&operation.form(), members).map_err(wrong)?;
    let mut request = DynamicMessage::new(operation.input.clone());
    let body = operation.body.as_ref().ok_or_else(unknown)?;
    request.set_field(body, Proto::Message(record));
    call(view, operation, &request, &[("idempotency-key", key)]).await
}

/// The record as the API has it now.
pub(crate) async fn read(view: &View, kind: &Kind, id: &str) -> Result<Answered, Status> {
    let mut request = DynamicMessage::new(kind.get.input.clone());
    kind.name_in(&mut request, id);
    call(view, &kind.get, &request, &[]).await
}
