//! Reads and creates the rows of `signing_keys` and the installation's own secrets.
//!
//! These rows do not belong to a tenant: the queries run in the owner's scope.

use authority_crypto::{self as crypto, Algorithm, KeyRing, KeySigner, Pair, jwk, random};
use authority_model::schema::{service_secrets, signing_keys};
use chrono::{DateTime, Datelike, TimeDelta, Utc};
use diesel::{
    ExpressionMethods, Insertable, OptionalExtension, QueryDsl, Queryable, Selectable,
    SelectableHelper, pg::Pg,
};
use serde_json::Value;

use super::{
    error::Error,
    held::InventoryKey,
    public_key::{PublicKey, Status},
    purpose::TOKENS,
};
use authority_store::{self as store, Db, RunQueryDsl, SERVICE, locks};

/// How long a key is active before it is due for rotation.
pub(super) const ROTATION: TimeDelta = TimeDelta::days(90);
/// The name of the root key of all message authentication codes.
const MAC: &str = "mac";
/// The advisory lock for creating, rotating and revoking keys. It keeps two nodes from taking the
/// same step twice.
const LOCK: i64 = locks::SIGNING_KEYS;

diesel::define_sql_function! { fn pg_advisory_xact_lock(number: diesel::sql_types::BigInt); }

/// A key as listed in the inventory, without the private key.
#[derive(Clone, Debug, PartialEq, Queryable, Selectable, Insertable)]
#[diesel(table_name = signing_keys, check_for_backend(Pg))]
pub struct SigningKey {
    pub kid: String,
    pub alg: String,
    pub purpose: String,
    pub custody_provider: String,
    pub custody_ref: Option<String>,
    pub status: String,
    pub managed: bool,
    pub created_at: DateTime<Utc>,
    pub created_by: String,
    pub activated_at: Option<DateTime<Utc>>,
    pub rotation_due_at: Option<DateTime<Utc>>,
    pub rotated_at: Option<DateTime<Utc>>,
    pub retired_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
    pub notes: Option<String>,
    pub public_jwk: Value,
}

/// A request for a new key.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub algorithm: Algorithm,
    pub purpose: String,
    pub notes: Option<String>,
    pub created_by: String,
}

/// Waits for the lock. Later queries see the commits of earlier holders of the lock.
pub(super) async fn lock(db: &mut Db) -> Result<(), Error> {
    let locked = diesel::select(pg_advisory_xact_lock(LOCK)).execute(db).await;
    locked.map(drop).map_err(sql)
}

/// Returns the root key of all message authentication codes. Creates it if it is missing.
pub(super) async fn mac_root(
    db: &mut Db,
    ring: &KeyRing,
    now: DateTime<Utc>,
) -> Result<[u8; 32], Error> {
    let associated = format!("-|{MAC}");
    let found: Option<Vec<u8>> = service_secrets::table
        .find(MAC)
        .select(service_secrets::sealed)
        .first(db)
        .await
        .optional()
        .map_err(sql)?;
    if let Some(sealed) = found {
        let root = ring.open(associated.as_bytes(), &sealed)?;
        return root.try_into().map_err(|_| crypto::Error::Sealed.into());
    }
    let root = random()?;
    let row = (
        service_secrets::name.eq(MAC),
        service_secrets::sealed.eq(ring.seal(associated.as_bytes(), &root)?),
        service_secrets::created_at.eq(now),
    );
    diesel::insert_into(service_secrets::table).values(row).execute(db).await.map_err(sql)?;
    Ok(root)
}

/// Creates a managed key for each wanted purpose that has no active managed key.
pub(super) async fn make_missing(
    db: &mut Db,
    ring: &KeyRing,
    now: DateTime<Utc>,
    wanted: &[&str],
) -> Result<(), Error> {
    let present: Vec<String> = signing_keys::table
        .filter(signing_keys::managed)
        .filter(signing_keys::status.eq(Status::Active.word()))
        .select(signing_keys::purpose)
        .load(db)
        .await
        .map_err(sql)?;
    for purpose in wanted.iter().filter(|slug| !present.iter().any(|known| known == *slug)) {
        make_managed(db, ring, purpose, now).await?;
    }
    Ok(())
}

pub(super) async fn make_managed(
    db: &mut Db,
    ring: &KeyRing,
    purpose: &str,
    now: DateTime<Utc>,
) -> Result<SigningKey, Error> {
    let (algorithm, pair) = managed_pair(purpose)?;
    let mut row = row(&own(algorithm, purpose), &pair, now)?;
    row.managed = true;
    insert(db, ring, &row, &pair).await?;
    Ok(row)
}

fn managed_pair(purpose: &str) -> Result<(Algorithm, Pair), Error> {
    Ok(match purpose {
        TOKENS => (Algorithm::Rs256, Pair::rsa()?),
        _ => (Algorithm::EdDsa, Pair::ed25519()?),
    })
}

/// Describes a key that the service creates for itself.
fn own(algorithm: Algorithm, purpose: &str) -> NewKey {
    let created_by = SERVICE.to_owned();
    NewKey { algorithm, purpose: purpose.to_owned(), notes: None, created_by }
}

/// Creates the key that will replace another key. It does not sign yet.
pub(super) async fn make_successor(
    db: &mut Db,
    ring: &KeyRing,
    old: &SigningKey,
    now: DateTime<Utc>,
) -> Result<SigningKey, Error> {
    let (algorithm, pair) = if old.managed {
        managed_pair(&old.purpose)?
    } else {
        let named =
            Algorithm::named(&old.alg).ok_or(crypto::Error::BadKey("its `alg` is unknown"))?;
        (named, Pair::inventory(named)?)
    };
    let mut row = row(&own(algorithm, &old.purpose), &pair, now)?;
    row.managed = old.managed;
    (row.activated_at, row.rotation_due_at) = (None, None);
    insert(db, ring, &row, &pair).await?;
    Ok(row)
}

/// Creates a key on request. The service itself does not sign with such a key.
pub(super) async fn make(
    db: &mut Db,
    ring: &KeyRing,
    new: &NewKey,
    pair: &Pair,
    now: DateTime<Utc>,
) -> Result<SigningKey, Error> {
    let row = row(new, pair, now)?;
    insert(db, ring, &row, pair).await?;
    Ok(row)
}

fn row(new: &NewKey, pair: &Pair, now: DateTime<Utc>) -> Result<SigningKey, Error> {
    Ok(SigningKey {
        kid: jwk::kid(&new.purpose, now.year(), &pair.public_jwk)?,
        alg: new.algorithm.name().to_owned(),
        purpose: new.purpose.clone(),
        custody_provider: "in-process".to_owned(),
        custody_ref: None,
        status: Status::Active.word().to_owned(),
        managed: false,
        created_at: now,
        created_by: new.created_by.clone(),
        activated_at: Some(now),
        rotation_due_at: Some(now + ROTATION),
        rotated_at: None,
        retired_at: None,
        revoked_at: None,
        notes: new.notes.clone(),
        public_jwk: pair.public_jwk.clone(),
    })
}

async fn insert(db: &mut Db, ring: &KeyRing, row: &SigningKey, pair: &Pair) -> Result<(), Error> {
    let sealed = ring.seal(&associated(row), &pair.private)?;
    let made = diesel::insert_into(signing_keys::table)
        .values((row, signing_keys::private_key.eq(sealed)))
        .execute(db)
        .await;
    match made.map_err(store::Error::from) {
        Ok(_) => Ok(()),
        Err(store::Error::Conflict(name)) if name == "signing_keys_pkey" => {
            Err(Error::KidTaken(row.kid.clone()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the associated data of a private key. The `-` means that it has no tenant.
fn associated(row: &SigningKey) -> Vec<u8> {
    format!("-|{}|{}|{}", row.kid, row.alg, row.purpose).into_bytes()
}

/// Loads all keys made by this service, in order of creation. Only keys in use have private keys.
pub(super) async fn hold(db: &mut Db, ring: &KeyRing) -> Result<Vec<InventoryKey>, Error> {
    let rows: Vec<(SigningKey, Option<Vec<u8>>)> = signing_keys::table
        .order((signing_keys::created_at, signing_keys::kid))
        .select((SigningKey::as_select(), signing_keys::private_key))
        .load(db)
        .await
        .map_err(sql)?;
    let held = rows.into_iter().map(|(row, sealed)| held(ring, row, sealed.as_deref()));
    held.filter_map(Result::transpose).collect()
}

/// Converts a row to a key. Returns `None` if this service did not make the key.
///
/// Without this check, a person with write access to the table but without the ring could publish a
/// key of their own. Evidence forged with that key would then be valid.
///
/// # Errors
/// The key signs, but the row differs from the row that this service created.
fn held(
    ring: &KeyRing,
    row: SigningKey,
    sealed: Option<&[u8]>,
) -> Result<Option<InventoryKey>, Error> {
    let created_at = row.created_at;
    let status =
        Status::named(&row.status).ok_or(crypto::Error::BadKey("its status is unknown"))?;
    let signs = row.managed && [Status::Active, Status::Rotating].contains(&status);
    let private = match (private_half(ring, &row, sealed), signs) {
        (Ok(private), true) => Some(private),
        (Ok(_), false) => None,
        (Err(error), true) => return Err(error.into()),
        (Err(error), false) => {
            tracing::error!(
                %error,
                key.id = row.kid,
                "found an altered signing key; not publishing it"
            );
            return Ok(None);
        }
    };
    let algorithm =
        Algorithm::named(&row.alg).ok_or(crypto::Error::BadKey("its `alg` is unknown"))?;
    let public = PublicKey {
        kid: row.kid,
        algorithm,
        purpose: row.purpose,
        managed: row.managed,
        status,
        revoked_at: row.revoked_at,
        jwk: row.public_jwk,
    };
    Ok(Some(InventoryKey { public, private, created_at }))
}

/// Returns the private key, after checking that it belongs to the public key.
fn private_half(
    ring: &KeyRing,
    row: &SigningKey,
    sealed: Option<&[u8]>,
) -> Result<Vec<u8>, crypto::Error> {
    let sealed = sealed.ok_or(crypto::Error::BadKey("it has no private key"))?;
    let private = ring.open(&associated(row), sealed)?;
    if *KeySigner::read(&private)?.public_jwk() == row.public_jwk {
        Ok(private)
    } else {
        Err(crypto::Error::BadKey("its private key does not match its public key"))
    }
}

/// Lists the keys in order of status ([`Status::ALL`]), then newest first.
pub(super) async fn list(db: &mut Db) -> Result<Vec<SigningKey>, Error> {
    let mut rows: Vec<SigningKey> = signing_keys::table
        .order((signing_keys::created_at.desc(), signing_keys::kid))
        .select(SigningKey::as_select())
        .load(db)
        .await
        .map_err(sql)?;
    rows.sort_by_key(|row| Status::ALL.iter().position(|status| status.word() == row.status));
    Ok(rows)
}

/// Rewraps all stored secrets under the ring's current key. Returns their number.
pub(super) async fn rewrap(db: &mut Db, ring: &KeyRing) -> Result<usize, Error> {
    lock(db).await?;
    let mut count = 0;
    let keys: Vec<(String, Option<Vec<u8>>)> = signing_keys::table
        .select((signing_keys::kid, signing_keys::private_key))
        .for_update()
        .load(db)
        .await
        .map_err(sql)?;
    for (kid, sealed) in keys {
        if let Some(anew) = sealed.map(|sealed| ring.rewrap(&sealed)).transpose()?.flatten() {
            diesel::update(signing_keys::table.find(kid))
                .set(signing_keys::private_key.eq(anew))
                .execute(db)
                .await
                .map_err(sql)?;
            count += 1;
        }
    }
    let secrets: Vec<(String, Vec<u8>)> = service_secrets::table
        .select((service_secrets::name, service_secrets::sealed))
        .for_update()
        .load(db)
        .await
        .map_err(sql)?;
    for (name, sealed) in secrets {
        if let Some(anew) = ring.rewrap(&sealed)? {
            diesel::update(service_secrets::table.find(name))
                .set(service_secrets::sealed.eq(anew))
                .execute(db)
                .await
                .map_err(sql)?;
            count += 1;
        }
    }
    Ok(count)
}

pub(super) fn sql(error: diesel::result::Error) -> Error {
    store::Error::from(error).into()
}
