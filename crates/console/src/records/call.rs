//! Calls of a kind's operations, with messages of any type.

use prost_reflect::DynamicMessage;
use tonic::Status;

use crate::{
    kinds::{Kind, Operation},
    view::View,
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
    let message = message.map_err(|_| Status::internal("the answer is not of its type"))?;
    let version = answer.headers.get("etag").and_then(|etag| etag.to_str().ok());
    Ok(Answered { message, version: version.map(str::to_owned) })
}

/// The record as the API has it now.
pub(crate) async fn read(view: &View, kind: &Kind, id: &str) -> Result<Answered, Status> {
    let mut request = DynamicMessage::new(kind.get.input.clone());
    kind.name_in(&mut request, id);
    call(view, &kind.get, &request, &[]).await
}
