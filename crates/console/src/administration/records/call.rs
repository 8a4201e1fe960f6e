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
    let version = answer.tag().map(str::to_owned);
    let message = DynamicMessage::decode(operation.output.clone(), answer.message);
    let message = message.map_err(|_| Status::internal(t::records::UNREADABLE))?;
    Ok(Answered { message, version })
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
    let record = of_json(&operation.form(), members).map_err(invalid)?;
    let mut request = DynamicMessage::new(operation.input.clone());
    let body = operation.body.as_ref().ok_or_else(unknown)?;
    request.set_field(body, Proto::Message(record));
    call(view, operation, &request, &[("idempotency-key", key)]).await
}

/// The error for members of a wrong type.
pub(super) fn invalid(found: Vec<(String, String)>) -> Status {
    let found = found.into_iter().map(|(name, problem)| format!("{name}: {problem}"));
    Status::invalid_argument(found.collect::<Vec<_>>().join("; "))
}

/// Counts the records of a kind in a tenant, or in all tenants, with these filters. `None` if the
/// role may not list them.
pub(crate) async fn count(
    view: &View,
    path: &str,
    tenant: Option<&str>,
    filters: &Map<String, Value>,
) -> Option<Result<i32, Status>> {
    let kind = Kind::at(path).filter(|kind| view.may(&kind.list.rpc))?;
    let mut members = filters.clone();
    members.insert("tenant_id".to_owned(), tenant.map(Value::from).unwrap_or_default());
    members.insert("limit".to_owned(), Value::from(1));
    members.insert("count".to_owned(), Value::from(true));
    let listed = async {
        let request = of_json(&kind.list.input, members).map_err(invalid)?;
        call(view, &kind.list, &request, &[]).await
    };
    let total = |listed: &DynamicMessage| listed.get_field_by_name("total")?.as_i32();
    Some(listed.await.map(|listed| total(&listed.message).unwrap_or_default()))
}

/// The record as the API has it now.
pub(crate) async fn read(view: &View, kind: &Kind, id: &str) -> Result<Answered, Status> {
    let mut request = DynamicMessage::new(kind.get.input.clone());
    kind.name_in(&mut request, id);
    call(view, &kind.get, &request, &[]).await
}
