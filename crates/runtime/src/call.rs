//! A call for a decision: its caller, request, idempotency key and deadline.

use std::sync::Arc;

use tonic::Request;

use super::{queue::QueuePlace, turn::Turn};
use authority_api::{
    deadline::Deadline,
    error::ApiError,
    identity::{Caller, idempotency_key, take_caller},
};

pub(super) struct Call<T> {
    pub(super) caller: Caller,
    pub(super) idempotency_key: Option<String>,
    pub(super) deadline: Deadline,
    /// The batch's place in the queue, if the call is part of a tenant's batch.
    pub(super) place: Option<Arc<QueuePlace>>,
    /// The call's turn in its batch.
    pub(super) turn: Option<Turn>,
    pub(super) message: T,
}

impl<T> Call<T> {
    /// Reads a call from a gRPC request.
    ///
    /// # Errors
    /// The call has no credential, or the idempotency key is malformed.
    pub(super) fn of(mut request: Request<T>) -> Result<Self, ApiError> {
        let caller = take_caller(&mut request)?;
        let deadline = Deadline::of(request.extensions());
        let (metadata, _, message) = request.into_parts();
        let idempotency_key = idempotency_key(&metadata)?;
        Ok(Self { caller, idempotency_key, deadline, place: None, turn: None, message })
    }

    /// Returns the same call with another message.
    pub(super) fn with<U>(self, message: U) -> Call<U> {
        let Self { caller, idempotency_key, deadline, place, turn, message: _ } = self;
        Call { caller, idempotency_key, deadline, place, turn, message }
    }
}
