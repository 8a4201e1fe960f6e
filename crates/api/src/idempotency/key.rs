//! An idempotency key: whose it is, for which operation, and what came with it.

use authority_core::keys::Keys;
use authority_crypto::sha256;
use authority_model::record::RpcRequest;
use tonic::Request;

use crate::{
    error::ApiError,
    identity::{Caller, caller, idempotency_key},
};

/// The tenant of a key where neither the caller nor the request has one.
const NO_TENANT: &str = "-";

/// The same key of another tenant, caller or operation is another key.
#[derive(Clone)]
pub struct IdempotencyKey {
    pub(super) tenant_id: String,
    /// A person's issuer and subject, or an API key's id, which stays when the key is rotated.
    pub(super) caller: String,
    /// The operation.
    pub(super) scope: &'static str,
    /// As it was given.
    pub(super) key: String,
    /// Of the request that it was given with.
    pub(super) request_sha256: [u8; 32],
    /// Seals an answer that holds a secret.
    pub(super) seal: Option<Keys>,
}

impl IdempotencyKey {
    /// The key that a call carries, if any.
    ///
    /// # Errors
    /// Nobody calls, or the key is not one.
    pub fn of<T: RpcRequest>(call: &Request<T>) -> Result<Option<Self>, ApiError> {
        let Some(key) = idempotency_key(call.metadata())? else { return Ok(None) };
        let request = call.get_ref().encode_to_vec();
        Ok(Some(Self::new(&caller(call)?, T::METHOD, key, &request)))
    }

    /// A key of the caller's, in the caller's tenant, with the bytes that tell one request from another.
    pub fn new(caller: &Caller, scope: &'static str, key: String, request: &[u8]) -> Self {
        Self {
            tenant_id: caller.tenant().unwrap_or(NO_TENANT).to_owned(),
            caller: caller.identity(),
            scope,
            key,
            request_sha256: sha256(request),
            seal: None,
        }
    }

    /// In the tenant of the record, where the caller is of none. Empty: the record is of none either.
    #[must_use]
    pub fn within(mut self, tenant_id: &str) -> Self {
        if self.tenant_id == NO_TENANT && !tenant_id.is_empty() {
            tenant_id.clone_into(&mut self.tenant_id);
        }
        self
    }

    /// For an answer that holds a secret: it is sealed, and repeated once.
    #[must_use]
    pub fn sealed(self, keys: Keys) -> Self {
        Self { seal: Some(keys), ..self }
    }

    pub fn tenant_id(&self) -> &str {
        &self.tenant_id
    }

    /// What a sealed answer is bound to.
    pub(super) fn place(&self) -> Vec<u8> {
        let Self { tenant_id, caller, scope, key, .. } = self;
        format!("idempotency|{tenant_id}|{caller}|{scope}|{key}").into_bytes()
    }
}
