//! The API of the signing keys. authority-keys implements the keys.

use authority_model::{
    proto::keys::{
        CancelKeyRotationRequest, CompleteKeyRotationRequest, CreateKeyRequest, KeyDates,
        KeyRotation, KeyRotationSummary, ListKeyRotationsRequest, ListKeyRotationsResponse,
        ListKeysRequest, ListKeysResponse, RevokeKeyRequest, RevokeKeyResponse,
        ScheduleKeyRotationRequest, SigningKey,
    },
    service::KeyService,
    wire::Json,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use tonic::{Request, Response, Status};

use crate::flow::{operations::Reply, registry::Registry};
use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency::{Done, IdempotencyKey},
    identity::admitted,
};
use authority_crypto::Algorithm;
use authority_keys::{self as keys, NewKey, NewRotation, Rotation};

const IN_PROCESS: &str = "in-process";
/// Custody providers with keys that are read-only here.
const READ_ONLY: [&str; 4] = ["kms-provider-a", "kms-provider-b", "vault-provider-c", "pkcs11"];
const GENERAL: &str = "general";

/// The service for signing keys.
#[derive(Clone)]
pub struct SigningKeys(pub Registry);

#[tonic::async_trait]
impl KeyService for SigningKeys {
    async fn list_keys(&self, call: Request<ListKeysRequest>) -> Reply<ListKeysResponse> {
        admitted(call)?;
        let keys = self.0.keys.list().await.map_err(refused)?;
        Ok(Response::new(ListKeysResponse {
            keys: keys.into_iter().map(|key| shown(key, false)).collect(),
            providers_writable: vec![IN_PROCESS.to_owned()],
            providers_read_only: READ_ONLY.map(str::to_owned).to_vec(),
        }))
    }

    async fn create_key(&self, call: Request<CreateKeyRequest>) -> Reply<SigningKey> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        let provider = request.custody_provider.as_deref().unwrap_or(IN_PROCESS);
        if provider != IN_PROCESS {
            let text = format!("keys of `{provider}` are read-only here; use `{IN_PROCESS}`");
            return Err(ApiError::new(ErrorCode::ReadOnlyProvider, text).into());
        }
        let algorithm = match request.alg.as_deref() {
            None => Some(Algorithm::Es256),
            Some(name) => Algorithm::named(name),
        };
        let algorithm = algorithm.ok_or_else(|| ApiError::field("alg", "is unknown"))?;
        let new = NewKey {
            algorithm,
            purpose: request.purpose.unwrap_or_else(|| GENERAL.to_owned()),
            notes: request.notes,
            created_by: caller.actor.clone(),
        };
        let pair = self.0.keys.pair(algorithm).await.map_err(refused)?;
        let keys = self.0.keys.clone();
        let made = self.0.idempotent(&caller, key, async move |db| {
            Ok(shown(keys.create(db, &new, &pair).await?, true))
        });
        self.refreshed(made.await?).await
    }

    async fn revoke_key(&self, call: Request<RevokeKeyRequest>) -> Reply<RevokeKeyResponse> {
        let (caller, request) = admitted(call)?;
        let key = self.0.keys.revoke(&request.kid, &caller.actor).await.map_err(refused)?;
        Ok(Response::new(RevokeKeyResponse {
            kid: key.kid,
            status: key.status,
            revoked_at: key.revoked_at.map(Into::into),
        }))
    }

    async fn list_key_rotations(
        &self,
        call: Request<ListKeyRotationsRequest>,
    ) -> Reply<ListKeyRotationsResponse> {
        let (_, request) = admitted(call)?;
        let mut keys = self.0.keys.list().await.map_err(refused)?;
        keys.retain(|key| {
            key.status != keys::Status::Revoked.word()
                && request.scope.as_ref().is_none_or(|of| key.purpose == *of)
        });
        let mut rotations = self.0.keys.rotations().await.map_err(refused)?;
        rotations.retain(|one| keys.iter().any(|key| key.kid == one.kid));
        Ok(Response::new(ListKeyRotationsResponse {
            summary: Some(summary(&keys, self.0.clock.now())),
            keys: keys.into_iter().map(dates).collect(),
            rotations: rotations.into_iter().map(rotation).collect(),
        }))
    }

    async fn schedule_key_rotation(
        &self,
        call: Request<ScheduleKeyRotationRequest>,
    ) -> Reply<KeyRotation> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        let due_at = request.due_at.and_then(authority_model::wire::Time::moment);
        let new = NewRotation {
            kid: request.kid,
            due_at: due_at.unwrap_or_else(|| self.0.clock.now()),
            reason: request.reason,
            created_by: caller.actor.clone(),
        };
        let keys = self.0.keys.clone();
        let planned = self
            .0
            .idempotent(&caller, key, async move |db| Ok(rotation(keys.schedule(db, new).await?)));
        Ok(planned.await?.reply())
    }

    async fn complete_key_rotation(
        &self,
        call: Request<CompleteKeyRotationRequest>,
    ) -> Reply<KeyRotation> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        let keys = self.0.keys.clone();
        let done = self.0.idempotent(&caller, key, async move |db| {
            Ok(rotation(keys.complete(db, &request.id).await?))
        });
        self.refreshed(done.await?).await
    }

    async fn cancel_key_rotation(
        &self,
        call: Request<CancelKeyRotationRequest>,
    ) -> Reply<KeyRotation> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, request) = admitted(call)?;
        let keys = self.0.keys.clone();
        let ended = self.0.idempotent(&caller, key, async move |db| {
            Ok(rotation(keys.cancel(db, &request.id).await?))
        });
        self.refreshed(ended.await?).await
    }
}

impl SigningKeys {
    /// Responds once this node signs and verifies with the new keys.
    async fn refreshed<M>(&self, done: Done<M>) -> Reply<M> {
        self.0.keys.refresh().await.map_err(refused)?;
        Ok(done.reply())
    }
}

/// Counts the active keys and their due rotations. A rotation is due soon or overdue.
fn summary(keys: &[keys::SigningKey], now: DateTime<Utc>) -> KeyRotationSummary {
    let active = || keys.iter().filter(|key| key.status == keys::Status::Active.word());
    let due = |from: DateTime<Utc>, to: DateTime<Utc>| {
        let due = active().filter_map(|key| key.rotation_due_at);
        count(due.filter(|due| (from..to).contains(due)).count())
    };
    KeyRotationSummary {
        active: count(active().count()),
        due_30d: due(now, now + TimeDelta::days(30)),
        overdue: due(DateTime::UNIX_EPOCH, now),
    }
}

fn count(of: usize) -> i32 {
    i32::try_from(of).unwrap_or(i32::MAX)
}

fn dates(key: keys::SigningKey) -> KeyDates {
    KeyDates {
        kid: key.kid,
        purpose: key.purpose,
        status: key.status,
        created_at: Some(key.created_at.into()),
        activated_at: key.activated_at.map(Into::into),
        rotation_due_at: key.rotation_due_at.map(Into::into),
        retired_at: key.retired_at.map(Into::into),
    }
}

fn rotation(of: Rotation) -> KeyRotation {
    KeyRotation {
        id: of.id,
        kid: of.kid,
        successor_kid: of.successor_kid,
        state: of.state,
        due_at: Some(of.due_at.into()),
        reason: of.reason,
        created_at: Some(of.created_at.into()),
        created_by: of.created_by,
        begun_at: of.begun_at.map(Into::into),
        ended_at: of.ended_at.map(Into::into),
    }
}

/// Converts a key to the API's form. Its public half is only included on create.
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
    ApiError::from(error).into()
}
