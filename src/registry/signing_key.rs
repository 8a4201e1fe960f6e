//! Signing keys: the inventory's API. What the keys do is the keys' room's business.

use authority_model::{
    proto::keys::{
        CreateKeyRequest, ListKeysRequest, ListKeysResponse, RevokeKeyRequest, RevokeKeyResponse,
        SigningKey, key_service_server::KeyService,
    },
    wire::Json,
};
use serde_json::Value;
use tonic::{Request, Response, Status};

use super::flow::{Reply, admitted};
use crate::{
    error::{ErrorCode, Refusal},
    keys::{self, Algorithm, Keys, NewKey},
};

const IN_PROCESS: &str = "in-process";
/// Custody providers whose keys are only listed here.
const READ_ONLY: [&str; 4] = ["kms-provider-a", "kms-provider-b", "vault-provider-c", "pkcs11"];
const GENERAL: &str = "general";

/// The service of signing keys.
#[derive(Clone)]
pub struct SigningKeys {
    pub keys: Keys,
}

#[tonic::async_trait]
impl KeyService for SigningKeys {
    async fn list_keys(&self, call: Request<ListKeysRequest>) -> Reply<ListKeysResponse> {
        admitted(call)?;
        let keys = self.keys.list().await.map_err(refused)?;
        Ok(Response::new(ListKeysResponse {
            keys: keys.into_iter().map(|key| shown(key, false)).collect(),
            providers_writable: vec![IN_PROCESS.to_owned()],
            providers_read_only: READ_ONLY.map(str::to_owned).to_vec(),
        }))
    }

    async fn create_key(&self, call: Request<CreateKeyRequest>) -> Reply<SigningKey> {
        let (caller, request) = admitted(call)?;
        let provider = request.custody_provider.as_deref().unwrap_or(IN_PROCESS);
        if provider != IN_PROCESS {
            let text = format!("keys of `{provider}` are read-only here; use `{IN_PROCESS}`");
            return Err(Refusal::new(ErrorCode::ReadOnlyProvider, text).into());
        }
        let algorithm = match request.alg.as_deref() {
            None => Some(Algorithm::Es256),
            Some(name) => Algorithm::named(name),
        };
        let algorithm = algorithm.ok_or_else(|| Refusal::field("alg", "is unknown"))?;
        let new = NewKey {
            algorithm,
            purpose: request.purpose.unwrap_or_else(|| GENERAL.to_owned()),
            notes: request.notes,
            created_by: caller.actor,
        };
        let made = self.keys.create(new).await.map_err(refused)?;
        Ok(Response::new(shown(made, true)))
    }

    async fn revoke_key(&self, call: Request<RevokeKeyRequest>) -> Reply<RevokeKeyResponse> {
        let (caller, request) = admitted(call)?;
        let key = self.keys.revoke(&request.kid, &caller.actor).await.map_err(refused)?;
        Ok(Response::new(RevokeKeyResponse {
            kid: key.kid,
            status: key.status,
            revoked_at: key.revoked_at.map(Into::into),
        }))
    }
}

/// A key as the API shows it; its public half on create only.
fn shown(key: keys::SigningKey, with_public: bool) -> SigningKey {
    SigningKey {
        kid: key.kid,
        alg: key.alg,
        purpose: key.purpose,
        custody_provider: key.custody_provider,
        custody_ref: key.custody_ref,
        status: key.status,
        managed: key.managed,
        created_at: Some(key.created_at.into()),
        created_by: key.created_by,
        activated_at: key.activated_at.map(Into::into),
        rotation_due_at: key.rotation_due_at.map(Into::into),
        rotated_at: key.rotated_at.map(Into::into),
        retired_at: key.retired_at.map(Into::into),
        revoked_at: key.revoked_at.map(Into::into),
        notes: key.notes,
        public_jwk: match key.public_jwk {
            Value::Object(members) if with_public => Some(Json(members)),
            _ => None,
        },
    }
}

fn refused(error: keys::Error) -> Status {
    Refusal::from(error).into()
}
