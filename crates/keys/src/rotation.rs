//! Rotations. A successor is created and published, and signs an hour later. The old key then
//! retires.
//!
//! While a rotation is in progress, the old key is `rotating` and still signs. This gives verifiers
//! time to fetch the successor's public key. Every step takes the inventory's lock, which allows
//! any number of nodes to run the worker.

use authority_crypto::{KeyRing, random};
use authority_ids::RecordId;
use authority_model::schema::{key_rotations, signing_keys};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, Insertable, OptionalExtension, QueryDsl, Queryable,
    Selectable, SelectableHelper, pg::Pg,
};

use super::{
    error::Error,
    inventory::{self, ROTATION, SigningKey, lock, sql},
    public_key::Status,
};
use authority_store::{Db, RunQueryDsl, SERVICE};

/// How long a successor is published before it signs.
pub(super) const PUBLISHED: TimeDelta = TimeDelta::hours(1);

const PENDING: &str = "pending";
const IN_PROGRESS: &str = "in_progress";
const DONE: &str = "done";
const CANCELLED: &str = "cancelled";

/// The replacement of one key by its successor.
#[derive(Clone, Debug, PartialEq, Queryable, Selectable, Insertable)]
#[diesel(table_name = key_rotations, check_for_backend(Pg))]
pub struct Rotation {
    pub id: String,
    pub kid: String,
    pub successor_kid: Option<String>,
    pub state: String,
    pub reason: Option<String>,
    pub due_at: DateTime<Utc>,
    pub created_at: DateTime<Utc>,
    pub created_by: String,
    pub begun_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
}

/// A request to plan a rotation.
#[derive(Clone, Debug)]
pub struct NewRotation {
    pub kid: String,
    pub due_at: DateTime<Utc>,
    pub reason: Option<String>,
    pub created_by: String,
}

/// Returns the unfinished rotations, the next due first.
pub(super) async fn open(db: &mut Db) -> Result<Vec<Rotation>, Error> {
    let open = key_rotations::table
        .filter(key_rotations::state.eq_any([PENDING, IN_PROGRESS]))
        .order((key_rotations::due_at, key_rotations::id));
    open.select(Rotation::as_select()).load(db).await.map_err(sql)
}

/// Plans a rotation of an active key.
pub(super) async fn schedule(
    db: &mut Db,
    new: NewRotation,
    now: DateTime<Utc>,
) -> Result<Rotation, Error> {
    lock(db).await?;
    let key = key(db, &new.kid).await?.ok_or_else(|| Error::NoSuchKey(new.kid.clone()))?;
    if key.status != Status::Active.word() {
        return Err(Error::NotActive { kid: key.kid, status: key.status });
    }
    let under_way = open(db).await?.into_iter();
    let concerns =
        |one: &Rotation| one.kid == key.kid || one.successor_kid.as_ref() == Some(&key.kid);
    if let Some(one) = under_way.into_iter().find(concerns) {
        return Err(Error::RotationOpen { kid: key.kid, id: one.id });
    }
    let row = Rotation {
        id: RecordId::new("key_rotation", u128::from_be_bytes(random()?).into()).into(),
        kid: key.kid,
        successor_kid: None,
        state: PENDING.to_owned(),
        reason: new.reason,
        due_at: new.due_at,
        created_at: now,
        created_by: new.created_by,
        begun_at: None,
        ended_at: None,
    };
    diesel::insert_into(key_rotations::table).values(&row).execute(db).await.map_err(sql)?;
    Ok(row)
}

async fn key(db: &mut Db, kid: &str) -> Result<Option<SigningKey>, Error> {
    let found = signing_keys::table.find(kid).select(SigningKey::as_select()).first(db).await;
    found.optional().map_err(sql)
}

/// Publishes the successor. The old key still signs.
async fn begin(
    db: &mut Db,
    ring: &KeyRing,
    rotation: &Rotation,
    now: DateTime<Utc>,
) -> Result<Rotation, Error> {
    let old = key(db, &rotation.kid).await?;
    let old = old.ok_or_else(|| Error::NoSuchKey(rotation.kid.clone()))?;
    set_status(db, &old.kid, Status::Rotating).await?;
    let successor = inventory::make_successor(db, ring, &old, now).await?;
    let row = diesel::update(key_rotations::table.find(&rotation.id)).set((
        key_rotations::state.eq(IN_PROGRESS),
        key_rotations::successor_kid.eq(successor.kid),
        key_rotations::begun_at.eq(now),
    ));
    row.returning(Rotation::as_returning()).get_result(db).await.map_err(sql)
}

/// Makes the successor sign from this transaction on, and retires the old key.
async fn finish(db: &mut Db, rotation: &Rotation, now: DateTime<Utc>) -> Result<Rotation, Error> {
    diesel::update(signing_keys::table.find(&rotation.kid))
        .set((
            signing_keys::status.eq(Status::Retired.word()),
            signing_keys::rotated_at.eq(now),
            signing_keys::retired_at.eq(now),
        ))
        .execute(db)
        .await
        .map_err(sql)?;
    succeed(db, rotation, now).await
}

/// Makes the successor sign from this transaction on.
async fn succeed(db: &mut Db, rotation: &Rotation, now: DateTime<Utc>) -> Result<Rotation, Error> {
    let successor = rotation.successor_kid.as_deref().unwrap_or_default();
    diesel::update(signing_keys::table.find(successor))
        .set((signing_keys::activated_at.eq(now), signing_keys::rotation_due_at.eq(now + ROTATION)))
        .execute(db)
        .await
        .map_err(sql)?;
    end(db, &rotation.id, DONE, now).await
}

/// Completes a rotation immediately, whether or not it has started.
pub(super) async fn complete(
    db: &mut Db,
    ring: &KeyRing,
    id: &str,
    now: DateTime<Utc>,
) -> Result<Rotation, Error> {
    let rotation = unfinished(db, id).await?;
    let started = match rotation.state.as_str() {
        PENDING => begin(db, ring, &rotation, now).await?,
        _ => rotation,
    };
    finish(db, &started, now).await
}

/// Cancels a rotation. The old key stays; a successor is revoked if it was created.
pub(super) async fn cancel(db: &mut Db, id: &str, now: DateTime<Utc>) -> Result<Rotation, Error> {
    let rotation = unfinished(db, id).await?;
    call_off(db, &rotation, now).await
}

async fn call_off(db: &mut Db, rotation: &Rotation, now: DateTime<Utc>) -> Result<Rotation, Error> {
    if let Some(successor) = &rotation.successor_kid {
        diesel::update(signing_keys::table.find(successor))
            .filter(signing_keys::status.ne(Status::Revoked.word()))
            .set((
                signing_keys::status.eq(Status::Revoked.word()),
                signing_keys::revoked_at.eq(now),
            ))
            .execute(db)
            .await
            .map_err(sql)?;
        set_status(db, &rotation.kid, Status::Active).await?;
    }
    end(db, &rotation.id, CANCELLED, now).await
}

/// Ends the unfinished rotation that a revoked key is part of, if any.
///
/// Returns whether another key already signs.
pub(super) async fn on_revoked(db: &mut Db, kid: &str, now: DateTime<Utc>) -> Result<bool, Error> {
    let part = key_rotations::kid.eq(kid).or(key_rotations::successor_kid.eq(kid));
    let found: Option<Rotation> = key_rotations::table
        .filter(key_rotations::state.eq_any([PENDING, IN_PROGRESS]).and(part))
        .select(Rotation::as_select())
        .first(db)
        .await
        .optional()
        .map_err(sql)?;
    let Some(rotation) = found else { return Ok(false) };
    if rotation.state == PENDING {
        end(db, &rotation.id, CANCELLED, now).await?;
        return Ok(false);
    }
    if rotation.kid == kid {
        // No other key signs for this purpose now. The successor must start at once.
        succeed(db, &rotation, now).await?;
    } else {
        call_off(db, &rotation, now).await?;
    }
    Ok(true)
}

/// Runs one round of the worker.
///
/// Plans rotations for the keys that are due, starts the planned rotations, and completes the
/// rotations with a successor that was published for long enough. Returns the number of steps.
pub(super) async fn work(db: &mut Db, ring: &KeyRing, now: DateTime<Utc>) -> Result<usize, Error> {
    lock(db).await?;
    let mut steps = 0;
    let rotations = open(db).await?;
    let overdue: Vec<String> = signing_keys::table
        .filter(signing_keys::managed)
        .filter(signing_keys::status.eq(Status::Active.word()))
        .filter(signing_keys::rotation_due_at.le(now))
        .select(signing_keys::kid)
        .load(db)
        .await
        .map_err(sql)?;
    let concerned = |kid: &String| {
        rotations.iter().any(|one| one.kid == *kid || one.successor_kid.as_ref() == Some(kid))
    };
    for kid in overdue.into_iter().filter(|kid| !concerned(kid)) {
        let reason = Some("its rotation was due".to_owned());
        let new = NewRotation { kid, due_at: now, reason, created_by: SERVICE.to_owned() };
        schedule(db, new, now).await?;
        steps += 1;
    }
    for rotation in open(db).await?.into_iter().filter(|one| one.due_at <= now) {
        match rotation.begun_at {
            None => drop(begin(db, ring, &rotation, now).await?),
            Some(started) if started + PUBLISHED <= now => drop(finish(db, &rotation, now).await?),
            Some(_) => continue,
        }
        steps += 1;
    }
    Ok(steps)
}

async fn unfinished(db: &mut Db, id: &str) -> Result<Rotation, Error> {
    lock(db).await?;
    let found = key_rotations::table.find(id).select(Rotation::as_select()).first(db).await;
    let found: Option<Rotation> = found.optional().map_err(sql)?;
    let rotation = found.ok_or_else(|| Error::UnknownRotation(id.to_owned()))?;
    if [DONE, CANCELLED].contains(&rotation.state.as_str()) {
        return Err(Error::RotationEnded { id: rotation.id, state: rotation.state });
    }
    Ok(rotation)
}

async fn set_status(db: &mut Db, kid: &str, status: Status) -> Result<(), Error> {
    let row = diesel::update(signing_keys::table.find(kid));
    let set = row.set(signing_keys::status.eq(status.word())).execute(db).await;
    set.map(drop).map_err(sql)
}

async fn end(db: &mut Db, id: &str, state: &str, now: DateTime<Utc>) -> Result<Rotation, Error> {
    let row = diesel::update(key_rotations::table.find(id))
        .set((key_rotations::state.eq(state), key_rotations::ended_at.eq(now)));
    row.returning(Rotation::as_returning()).get_result(db).await.map_err(sql)
}
