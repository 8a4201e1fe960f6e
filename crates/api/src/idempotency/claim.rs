//! Claims a key in a transaction, stores its response, and finds an earlier response.

use authority_keys::Keys;
use authority_model::schema::idempotency_keys;
use authority_store::{self as store, Db, RunQueryDsl};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use futures_util::{FutureExt, future::BoxFuture};
use prost::Message;

use super::{answer::Done, error::Error, key::IdempotencyKey};

/// How long a response is kept under its idempotency key.
pub(super) const ANSWERS_KEPT: TimeDelta = TimeDelta::hours(24);
/// How long a response with a secret is kept.
pub(super) const SECRETS_KEPT: TimeDelta = TimeDelta::minutes(10);

/// The caller in rows that are older than the column. Their responses are not repeated, and their
/// keys cannot be used for new decisions.
const NOBODY: &str = "";

/// The first response under a key.
#[derive(Queryable, Selectable)]
#[diesel(table_name = idempotency_keys, check_for_backend(diesel::pg::Pg))]
pub struct FirstAnswer {
    caller: String,
    request_sha256: Vec<u8>,
    answer: Option<Vec<u8>>,
    created_at: DateTime<Utc>,
    /// The decision, if the recorder stored the response.
    pub decision_id: Option<String>,
}

impl FirstAnswer {
    /// Decodes the response.
    ///
    /// # Errors
    /// The response contained a secret and was erased, or it does not decode to this message.
    pub fn read<M: Message + Default>(&self) -> Result<Done<M>, Error> {
        Done::before(self.bytes()?)
    }

    fn bytes(&self) -> Result<&[u8], Error> {
        self.answer.as_deref().ok_or(Error::Erased)
    }
}

impl IdempotencyKey {
    /// Claims the key for the effect that follows in this transaction, or returns the first
    /// response if the key was claimed before. Waits for a running transaction that has claimed the
    /// key.
    ///
    /// # Errors
    /// The key came with another request, its first request is still running, or its response is
    /// erased.
    pub async fn claim(&self, db: &mut Db, now: DateTime<Utc>) -> Result<Option<Vec<u8>>, Error> {
        self.forget_old(db, now).await?;
        let claimed = diesel::insert_into(idempotency_keys::table)
            .values((
                idempotency_keys::tenant_id.eq(self.tenant()),
                idempotency_keys::caller.eq(&self.caller),
                idempotency_keys::scope.eq(self.scope),
                idempotency_keys::key.eq(&self.key),
                idempotency_keys::request_sha256.eq(&self.request_sha256[..]),
                idempotency_keys::sealed.eq(self.seal.is_some()),
                idempotency_keys::created_at.eq(now),
            ))
            .on_conflict_do_nothing()
            .execute(db)
            .await
            .map_err(waited)?;
        if claimed == 1 {
            return Ok(None);
        }
        // If the sweep has just deleted the key's row, the key is free for the next attempt.
        let first = self.find(db, now).await?.ok_or(Error::InProgress)?;
        match &self.seal {
            None => first.bytes().map(|answer| Some(answer.to_vec())),
            Some(keys) => self.show_once(db, keys, &first, now).await.map(Some),
        }
    }

    /// Stores the response of the key that this transaction has claimed.
    ///
    /// # Errors
    /// The response cannot be sealed, or the database is unavailable.
    pub fn keep<'c>(
        &'c self,
        db: &'c mut Db,
        answer: &impl Message,
    ) -> BoxFuture<'c, Result<(), Error>> {
        self.keep_encoded(db, answer.encode_to_vec()).boxed()
    }

    async fn keep_encoded(&self, db: &mut Db, answer: Vec<u8>) -> Result<(), Error> {
        let answer = match &self.seal {
            None => answer,
            Some(keys) => keys.seal(&self.place(), &answer)?,
        };
        diesel::update(idempotency_keys::table.find(self.row()))
            .set(idempotency_keys::answer.eq(answer))
            .execute(db)
            .await?;
        Ok(())
    }

    /// The first response under the key, without claiming it. Read-only.
    ///
    /// # Errors
    /// The key came with another request.
    pub async fn find(
        &self,
        db: &mut Db,
        now: DateTime<Utc>,
    ) -> Result<Option<FirstAnswer>, Error> {
        let found: Option<FirstAnswer> = idempotency_keys::table
            .filter(idempotency_keys::tenant_id.eq(self.tenant()))
            .filter(idempotency_keys::caller.eq_any([NOBODY, self.caller.as_str()]))
            .filter(idempotency_keys::scope.eq(self.scope))
            .filter(idempotency_keys::key.eq(&self.key))
            .filter(idempotency_keys::created_at.gt(now - ANSWERS_KEPT))
            .order(idempotency_keys::caller.desc())
            .select(FirstAnswer::as_select())
            .first(db)
            .await
            .optional()?;
        match found {
            Some(first) if first.caller == NOBODY => Err(Error::Reused),
            Some(first) if first.request_sha256 != self.request_sha256 => Err(Error::Reused),
            found => Ok(found),
        }
    }

    /// Frees the key if `first` is still its first response.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn forget(&self, db: &mut Db, first: &FirstAnswer) -> Result<(), Error> {
        let row = idempotency_keys::table.find(self.row());
        let same = row.filter(idempotency_keys::answer.eq(first.answer.as_deref()));
        diesel::delete(same).execute(db).await?;
        Ok(())
    }

    /// Frees the key if its response has expired.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn forget_old(&self, db: &mut Db, now: DateTime<Utc>) -> Result<(), Error> {
        let row = idempotency_keys::table.find(self.row());
        let old = row.filter(idempotency_keys::created_at.le(now - ANSWERS_KEPT));
        diesel::delete(old).execute(db).await?;
        Ok(())
    }

    fn row(&self) -> (&str, &str, &str, &str) {
        (self.tenant(), self.scope, &self.key, &self.caller)
    }

    /// Returns a first response that contains a secret, and erases it. It can be read only for a
    /// short time.
    async fn show_once(
        &self,
        db: &mut Db,
        keys: &Keys,
        first: &FirstAnswer,
        now: DateTime<Utc>,
    ) -> Result<Vec<u8>, Error> {
        let answer = first.bytes()?;
        if first.created_at + SECRETS_KEPT <= now {
            return Err(Error::Erased);
        }
        // Of several concurrent callers, only one erases the response and returns it.
        let shown = idempotency_keys::table.find(self.row());
        let erased = diesel::update(shown.filter(idempotency_keys::answer.is_not_null()))
            .set(idempotency_keys::answer.eq(None::<Vec<u8>>))
            .execute(db)
            .await?;
        if erased == 0 {
            return Err(Error::Erased);
        }
        Ok(keys.open(&self.place(), answer)?)
    }
}

/// Maps a timeout of the wait for the first call to [`Error::InProgress`]: the database is
/// available.
fn waited(error: diesel::result::Error) -> Error {
    match store::Error::from(error) {
        store::Error::Timeout(_) => Error::InProgress,
        error => error.into(),
    }
}
