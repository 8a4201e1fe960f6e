//! The parts of a call that a handler reads: the caller, the request, and the idempotency key.

use authority_model::validate::{Validate, Violations};
use tonic::{Request, metadata::MetadataMap};

use super::caller::{Caller, CallerKind};
use crate::error::{ApiError, ErrorCode};

/// The name of the header in REST and of the metadata in gRPC.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency-key";
const LONGEST_KEY: usize = 255;

/// Returns the caller that the authentication layer checked against the method's access rules.
///
/// # Errors
/// The call has no credential.
pub fn caller<T>(call: &Request<T>) -> Result<Caller, ApiError> {
    known(call.extensions().get::<Caller>().cloned())
}

/// Like [`caller`], but takes the caller out of the call.
///
/// # Errors
/// The call has no credential.
pub fn take_caller<T>(call: &mut Request<T>) -> Result<Caller, ApiError> {
    known(call.extensions_mut().remove::<Caller>())
}

fn known(caller: Option<Caller>) -> Result<Caller, ApiError> {
    let known = caller.filter(|caller| caller.kind != CallerKind::Anonymous);
    known.ok_or_else(|| ApiError::plain(ErrorCode::Unauthenticated))
}

/// Returns the caller and the request, after validating the request by its proto's rules.
///
/// # Errors
/// The call has no credential, or fields break their rules; the error lists all of them.
pub fn admitted<T: Validate>(call: Request<T>) -> Result<(Caller, T), ApiError> {
    let caller = caller(&call)?;
    let request = call.into_inner();
    checked(&request)?;
    Ok((caller, request))
}

/// # Errors
/// The request breaks its proto's rules.
pub fn checked<T: Validate>(request: &T) -> Result<(), ApiError> {
    let mut found = Violations::default();
    request.validate(&mut found);
    ApiError::unless_clean(found)
}

/// Returns the call's idempotency key, if any.
///
/// # Errors
/// The key is not a valid header value, or is too long.
pub fn idempotency_key(metadata: &MetadataMap) -> Result<Option<String>, ApiError> {
    let Some(value) = metadata.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    if text.is_empty() || text.len() > LONGEST_KEY {
        let problem = "must be 1 to 255 visible ASCII characters";
        return Err(ApiError::field(IDEMPOTENCY_KEY, problem));
    }
    Ok(Some(text.to_owned()))
}
