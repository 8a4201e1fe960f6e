//! Idempotency keys: an effect happens once, and its answer is repeated for 24 hours.
//!
//! The key is claimed by the first statement of the effect's own transaction, and the answer is
//! written by its last, so that there is neither an effect without its answer nor an answer without
//! its effect. Whoever comes with the same key meanwhile waits at that row. A key is its caller's own:
//! nobody is answered what another was. A refused request has no effect and is not kept: it is judged
//! anew.

use authority_model::{
    record::{Record, RpcRequest},
    schema::idempotency_keys,
};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use prost::Message;
use tonic::{Request, Response, metadata::MetadataValue};

use super::{Error, Registry, version::tagged};
use authority_api::{
    error::{ApiError, ErrorCode},
    idempotency::{ANSWERS_KEPT, SECRETS_KEPT},
    identity::{Caller, idempotency_key},
};
use authority_core::{
    keys::Keys,
    store::{self, Db, RunQueryDsl, Transact},
};
use authority_crypto::sha256;

const NO_TENANT: &str = "-";

/// An idempotency key as it was given, and what it was given with.
pub(super) struct IdempotencyKey {
    tenant_id: Option<String>,
    scope: &'static str,
    key: String,
    request_sha256: [u8; 32],
    /// Seals an answer that holds a secret.
    seal: Option<Keys>,
}

impl IdempotencyKey {
    /// The key that a call carries, if any.
    pub(super) fn of<T: RpcRequest>(call: &Request<T>) -> Result<Option<Self>, ApiError> {
        let Some(key) = idempotency_key(call.metadata())? else { return Ok(None) };
        Ok(Some(Self {
            tenant_id: None,
            scope: T::METHOD,
            key,
            request_sha256: sha256(&call.get_ref().encode_to_vec()),
            seal: None,
        }))
    }

    /// Within the tenant that the request names; empty: none.
    pub(super) fn within(self, tenant_id: &str) -> Self {
        let tenant_id = Some(tenant_id).filter(|id| !id.is_empty()).map(str::to_owned);
        Self { tenant_id, ..self }
    }

    /// For an answer that holds a secret.
    pub(super) fn sealed(self, keys: Keys) -> Self {
        Self { seal: Some(keys), ..self }
    }

    /// What a sealed answer is bound to.
    fn place(&self, tenant: &str, caller: &str) -> Vec<u8> {
        format!("idempotency|{tenant}|{caller}|{}|{}", self.scope, self.key).into_bytes()
    }
}

/// An answer: to this call or, to a repeated one, the first.
pub(super) struct Done<M> {
    pub message: M,
    replayed: bool,
}

impl<M> Done<M> {
    pub(super) fn reply(self) -> Response<M> {
        mark(Response::new(self.message), self.replayed)
    }
}

impl<M: Record> Done<M> {
    pub(super) fn tagged(self) -> Response<M> {
        mark(tagged(self.message), self.replayed)
    }
}

fn mark<M>(mut response: Response<M>, replayed: bool) -> Response<M> {
    if replayed {
        let yes = MetadataValue::from_static("true");
        response.metadata_mut().insert("idempotency-replayed", yes);
    }
    response
}

impl Registry {
    /// Does `work` in one transaction; under a key that was there before, answers what was answered
    /// then.
    pub(super) async fn idempotent<M, F>(
        &self,
        caller: &Caller,
        key: Option<IdempotencyKey>,
        work: F,
    ) -> Result<Done<M>, Error>
    where
        M: Message + Default + Send + 'static,
        F: Transact<M, Error>,
    {
        let whose = caller.scope();
        let Some(key) = key else {
            let message = self.store.write_tx(&whose, work).await?;
            return Ok(Done { message, replayed: false });
        };
        let tenant = caller.tenant().or(key.tenant_id.as_deref()).unwrap_or(NO_TENANT).to_owned();
        let (now, asker) = (self.clock.now(), caller.identity());
        let done = self.store.write_tx(&whose, async move |db| {
            let claim = Claim { key: &key, tenant: &tenant, caller: &asker, now };
            if let Some(first) = claim.before(db).await? {
                let message = M::decode(first.as_slice());
                let message = message.map_err(|_| internal("a kept answer cannot be read"))?;
                return Ok::<_, Error>(Done { message, replayed: true });
            }
            let message = work(db).await?;
            claim.keep(db, message.encode_to_vec()).await?;
            Ok(Done { message, replayed: false })
        });
        done.await
    }
}

fn internal(what: &str) -> Error {
    Error::Store(store::Error::Internal(what.to_owned()))
}

struct Claim<'k> {
    key: &'k IdempotencyKey,
    tenant: &'k str,
    caller: &'k str,
    now: DateTime<Utc>,
}

impl Claim<'_> {
    fn row(&self) -> (&str, &str, &str, &str) {
        (self.tenant, self.caller, self.key.scope, &self.key.key)
    }

    /// Claims the key; the first answer, where another call has claimed it before.
    async fn before(&self, db: &mut Db) -> Result<Option<Vec<u8>>, Error> {
        let row = idempotency_keys::table.find(self.row());
        let old = row.filter(idempotency_keys::created_at.le(self.now - ANSWERS_KEPT));
        diesel::delete(old).execute(db).await?;
        let claimed = diesel::insert_into(idempotency_keys::table)
            .values((
                idempotency_keys::tenant_id.eq(self.tenant),
                idempotency_keys::caller.eq(self.caller),
                idempotency_keys::scope.eq(self.key.scope),
                idempotency_keys::key.eq(&self.key.key),
                idempotency_keys::request_sha256.eq(&self.key.request_sha256[..]),
                idempotency_keys::sealed.eq(self.key.seal.is_some()),
                idempotency_keys::created_at.eq(self.now),
            ))
            .on_conflict_do_nothing()
            .execute(db)
            .await
            .map_err(waited)?;
        if claimed == 1 {
            return Ok(None);
        }
        let (sha, answer, at): (Vec<u8>, Option<Vec<u8>>, DateTime<Utc>) = row
            .select((
                idempotency_keys::request_sha256,
                idempotency_keys::answer,
                idempotency_keys::created_at,
            ))
            .for_update()
            .first(db)
            .await?;
        if sha != self.key.request_sha256 {
            return Err(Error::Key(ErrorCode::IdempotencyKeyReused));
        }
        let answer = answer.ok_or(Error::Key(ErrorCode::IdempotencyAnswerErased))?;
        let Some(keys) = &self.key.seal else { return Ok(Some(answer)) };
        if at + SECRETS_KEPT <= self.now {
            return Err(Error::Key(ErrorCode::IdempotencyAnswerErased));
        }
        diesel::update(row).set(idempotency_keys::answer.eq(None::<Vec<u8>>)).execute(db).await?;
        let opened = keys.open(&self.key.place(self.tenant, self.caller), &answer);
        opened.map(Some).map_err(|_| internal("a sealed answer does not open"))
    }

    async fn keep(&self, db: &mut Db, answer: Vec<u8>) -> Result<(), Error> {
        let answer = match &self.key.seal {
            None => answer,
            Some(keys) => keys
                .seal(&self.key.place(self.tenant, self.caller), &answer)
                .map_err(|_| internal("an answer cannot be sealed"))?,
        };
        diesel::update(idempotency_keys::table.find(self.row()))
            .set(idempotency_keys::answer.eq(answer))
            .execute(db)
            .await?;
        Ok(())
    }
}

/// Who waited too long for the first call is told so, and not that the database is away.
fn waited(error: diesel::result::Error) -> Error {
    match store::Error::from(error) {
        store::Error::Unavailable(why) if why.starts_with("canceling statement") => {
            Error::Key(ErrorCode::IdempotencyInProgress)
        }
        other => other.into(),
    }
}
