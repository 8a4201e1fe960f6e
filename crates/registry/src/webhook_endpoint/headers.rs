//! An endpoint's own headers. Their names are returned; their values are stored encrypted.

use authority_model::{proto::events::WebhookEndpoint, validate::Violations, wire::Json};
use authority_webhook::destination::{HeaderError, check_headers};
use serde_json::{Map, Value};

/// Returned in place of a value.
const MASK: &str = "***";

/// Masks the values of the headers that a client sent. Their names stay. Returns the JSON to be
/// sealed, or `None` without headers or with violations.
pub(super) fn take(endpoint: &mut WebhookEndpoint, found: &mut Violations) -> Option<Vec<u8>> {
    let given = endpoint.headers.get_or_insert_default();
    let mut texts = Vec::new();
    for (name, value) in &given.0 {
        match value.as_str() {
            Some(MASK) => found.add(&field(name), "is a masked value; send the value itself"),
            Some(text) => texts.push((name.as_str(), text)),
            None => found.add(&field(name), "must be a text"),
        }
    }
    let is_whole = texts.len() == given.0.len();
    let headers = match check_headers(texts) {
        Ok(headers) if is_whole => headers,
        Ok(_) => return None,
        Err(fault) => {
            refuse(&fault, found);
            return None;
        }
    };
    let (mut masked, mut sealed) = (Map::new(), Map::new());
    for (name, value) in &headers {
        let value = value.to_str().unwrap_or_default();
        masked.insert(name.to_string(), MASK.into());
        sealed.insert(name.to_string(), value.into());
    }
    *given = Json(masked);
    (!sealed.is_empty()).then(|| Value::Object(sealed).to_string().into_bytes())
}

fn field(name: &str) -> String {
    format!("headers.{name}")
}

fn refuse(fault: &HeaderError, found: &mut Violations) {
    let field = match fault {
        HeaderError::TooMany(_) | HeaderError::TooLong(_) => "headers".to_owned(),
        HeaderError::Name(name)
        | HeaderError::Refused(name)
        | HeaderError::Twice(name)
        | HeaderError::Value(name) => field(name),
    };
    found.add(&field, fault.to_string());
}
