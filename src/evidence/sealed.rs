//! A stored decision read back into what it was decided on.

use serde_json::{Map, Value};

use super::Error;
use crate::decision::Request;

/// The request of a record, given the context that the record holds only a digest of.
///
/// # Errors
/// When either cannot be read as what this service wrote.
pub fn request(record: &[u8], context: &[u8]) -> Result<Request, Error> {
    let mut record: Map<String, Value> = serde_json::from_slice(record)?;
    let context: Value = serde_json::from_slice(context)?;
    let Some(Value::Object(mut request)) = record.remove("request") else {
        return Err(Error::Unreadable("its request"));
    };
    request.remove("context_digest");
    request.insert("context".to_owned(), context);
    let tenant_id = record.remove("tenant_id").ok_or(Error::Unreadable("its tenant"))?;
    request.insert("tenant_id".to_owned(), tenant_id);
    Ok(serde_json::from_value(Value::Object(request))?)
}
