//! Revokes a key, and updates its rotation and its successor.

use authority_crypto::KeyRing;
use authority_model::schema::signing_keys;
use chrono::{DateTime, Utc};
use diesel::{ExpressionMethods, OptionalExtension, QueryDsl, SelectableHelper};

use super::{
    error::Error,
    inventory::{SigningKey, lock, make_managed, sql},
    public_key::Status,
    rotation,
};
use authority_store::{Db, RunQueryDsl};

/// Revokes a key. If it was managed and active, a successor signs from this transaction on.
pub(super) async fn revoke(
    db: &mut Db,
    ring: &KeyRing,
    kid: &str,
    now: DateTime<Utc>,
) -> Result<SigningKey, Error> {
    lock(db).await?;
    let found = signing_keys::table
        .find(kid)
        .filter(signing_keys::status.ne(Status::Revoked.word()))
        .select(SigningKey::as_select())
        .for_update()
        .first(db)
        .await
        .optional()
        .map_err(sql)?;
    let before = found.ok_or_else(|| Error::NotFoundOrRevoked(kid.to_owned()))?;
    let row = diesel::update(signing_keys::table.find(kid))
        .set((signing_keys::status.eq(Status::Revoked.word()), signing_keys::revoked_at.eq(now)))
        .returning(SigningKey::as_returning())
        .get_result(db)
        .await
        .map_err(sql)?;
    let is_succeeded = rotation::on_revoked(db, kid, now).await?;
    if before.managed && before.status == Status::Active.word() && !is_succeeded {
        make_managed(db, ring, &before.purpose, now).await?;
    }
    Ok(row)
}
