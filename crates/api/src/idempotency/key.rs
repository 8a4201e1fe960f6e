//! An idempotency key, with its tenant, caller, operation and request.

use authority_crypto::sha256;
use authority_ids::TenantId;
use authority_keys::Keys;
use authority_model::record::RpcRequest;
use tonic::Request;

use crate::{
    error::ApiError,
    identity::{Caller, caller, idempotency_key},
};

/// The value of the column `tenant_id` for a key without a tenant.
const NO_TENANT: &str = "-";

/// An idempotency key. The same text of another tenant, caller or operation is a different key.
#[derive(Clone)]
pub struct IdempotencyKey {
    /// `None` if neither the caller nor the request has a tenant.
    tenant_id: Option<TenantId>,
    /// A person's issuer and subject, or an API key's id, which a rotation does not change.
    pub(super) caller: String,
    /// The operation.
    pub(super) scope: &'static str,
    /// The key as the caller sent it.
    pub(super) key: String,
    /// The digest of the request that was sent with the key.
    pub(super) request_sha256: [u8; 32],
    /// Encrypts a response that contains a secret.
    pub(super) seal: Option<Keys>,
}

impl IdempotencyKey {
    /// The call's key, if any.
    ///
    /// # Errors
    /// The call has no credential, or the key is malformed.
    pub fn of<T: RpcRequest>(call: &Request<T>) -> Result<Option<Self>, ApiError> {
        let Some(key) = idempotency_key(call.metadata())? else { return Ok(None) };
        let request = call.get_ref().encode_to_vec();
        Ok(Some(Self::new(&caller(call)?, T::METHOD, key, &request)))
    }

    /// Creates a key of the caller in the caller's tenant. `request` has the bytes that distinguish
    /// one request from another.
    pub fn new(caller: &Caller, scope: &'static str, key: String, request: &[u8]) -> Self {
        Self {
            tenant_id: caller.tenant().cloned(),
            caller: caller.identity(),
            scope,
            key,
            request_sha256: sha256(request),
            seal: None,
        }
    }

    /// Assigns the key to the address of a caller without a credential; `code` stands for the
    /// address.
    #[must_use]
    pub fn of_address(self, code: &str) -> Self {
        Self { caller: format!("address|{code}"), ..self }
    }

    /// Sets the key's tenant to the record's tenant, if the caller has no tenant.
    #[must_use]
    pub fn within(mut self, tenant_id: Option<&TenantId>) -> Self {
        if self.tenant_id.is_none() {
            self.tenant_id = tenant_id.cloned();
        }
        self
    }

    /// Returns the key's tenant as in the column `tenant_id`.
    pub(super) fn tenant(&self) -> &str {
        self.tenant_id.as_ref().map_or(NO_TENANT, TenantId::as_str)
    }

    /// Marks the response as secret: it is stored encrypted, and repeated only once.
    #[must_use]
    pub fn sealed(self, keys: Keys) -> Self {
        Self { seal: Some(keys), ..self }
    }

    /// Returns the key with its tenant, caller and operation, as one text. It is the associated data of
    /// a sealed response.
    pub fn place(&self) -> Vec<u8> {
        let (tenant, Self { caller, scope, key, .. }) = (self.tenant(), self);
        format!("idempotency|{tenant}|{caller}|{scope}|{key}").into_bytes()
    }
}
