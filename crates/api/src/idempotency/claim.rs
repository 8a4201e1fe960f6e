//! A key on a transaction: claimed, its answer kept or found again.

use authority_core::{
    keys::Keys,
    store::{self, Db, RunQueryDsl},
};
use authority_model::schema::idempotency_keys;
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use prost::Message;

use super::{ANSWERS_KEPT, Done, Error, IdempotencyKey, SECRETS_KEPT};

/// The caller of decisions that were kept before it was kept whose they are: nobody is answered those,
/// and nothing is decided anew under their keys.
const NOBODY: &str = "";

/// What was answered first under a key.
#[derive(Queryable, Selectable)]
#[diesel(table_name = idempotency_keys, check_for_backend(diesel::pg::Pg))]
pub struct FirstAnswer {
    caller: String,
    request_sha256: Vec<u8>,
    answer: Option<Vec<u8>>,
    created_at: DateTime<Utc>,
    /// The decision that it was, where the recorder kept it.
    pub decision_id: Option<String>,
}

impl FirstAnswer {
    /// The answer again.
    ///
    /// # Errors
    /// It held a secret and was erased, or is not such a message.
    pub fn read<M: Message + Default>(&self) -> Result<Done<M>, Error> {
        Done::before(self.bytes()?)
    }

    fn bytes(&self) -> Result<&[u8], Error> {
        self.answer.as_deref().ok_or(Error::Erased)
    }
}

impl IdempotencyKey {
    /// Claims the key for the effect that follows in this transaction; the first answer, where the key
    /// was claimed before. Waits for another transaction that has claimed it and not ended.
    ///
    /// # Errors
    /// The key came with another request, its first request is still running, or its answer is erased.
    pub async fn claim<M: Message + Default>(
        &self,
        db: &mut Db,
        now: DateTime<Utc>,
    ) -> Result<Option<Done<M>>, Error> {
        self.forget_old(db, now).await?;
        let claimed = diesel::insert_into(idempotency_keys::table)
            .values((
                idempotency_keys::tenant_id.eq(&self.tenant_id),
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
        // Swept in this moment, it is free for the next attempt.
        let first = self.find(db, now).await?.ok_or(Error::InProgress)?;
        match &self.seal {
            None => first.read().map(Some),
            Some(keys) => self.show_once(db, keys, &first, now).await.map(Some),
        }
    }

    /// Keeps the answer beside the key that this transaction has claimed.
    ///
    /// # Errors
    /// The answer cannot be sealed, or the database is away.
    pub async fn keep(&self, db: &mut Db, answer: &impl Message) -> Result<(), Error> {
        let answer = answer.encode_to_vec();
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

    /// What was answered under the key, without claiming it. Writes nothing.
    ///
    /// # Errors
    /// The key came with another request.
    pub async fn find(
        &self,
        db: &mut Db,
        now: DateTime<Utc>,
    ) -> Result<Option<FirstAnswer>, Error> {
        let found: Option<FirstAnswer> = idempotency_keys::table
            .filter(idempotency_keys::tenant_id.eq(&self.tenant_id))
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

    /// Makes the key free again once its answer is no longer kept.
    ///
    /// # Errors
    /// The database is away.
    pub async fn forget_old(&self, db: &mut Db, now: DateTime<Utc>) -> Result<(), Error> {
        let row = idempotency_keys::table.find(self.row());
        let old = row.filter(idempotency_keys::created_at.le(now - ANSWERS_KEPT));
        diesel::delete(old).execute(db).await?;
        Ok(())
    }

    fn row(&self) -> (&str, &str, &str, &str) {
        (&self.tenant_id, self.scope, &self.key, &self.caller)
    }

    /// The first answer that holds a secret: it is erased as it is read, and not read for long.
    async fn show_once<M: Message + Default>(
        &self,
        db: &mut Db,
        keys: &Keys,
        first: &FirstAnswer,
        now: DateTime<Utc>,
    ) -> Result<Done<M>, Error> {
        let answer = first.bytes()?;
        if first.created_at + SECRETS_KEPT <= now {
            return Err(Error::Erased);
        }
        // Of several that have found it, one erases it and shows it.
        let shown = idempotency_keys::table.find(self.row());
        let erased = diesel::update(shown.filter(idempotency_keys::answer.is_not_null()))
            .set(idempotency_keys::answer.eq(None::<Vec<u8>>))
            .execute(db)
            .await?;
        if erased == 0 {
            return Err(Error::Erased);
        }
        Done::before(&keys.open(&self.place(), answer)?)
    }
}

/// Whoever waited too long for the first call is told so, and not that the database is away.
fn waited(error: diesel::result::Error) -> Error {
    match store::Error::from(error) {
        store::Error::Unavailable(why) if why.starts_with("canceling statement") => {
            Error::InProgress
        }
        other => other.into(),
    }
}
