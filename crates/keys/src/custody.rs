//! The keys that this process has loaded and can use.

use std::{collections::HashMap, sync::Arc};

use authority_crypto::{
    self as crypto, Algorithm, DomainMac, ErasedNames, KeyRing, Mac, Pair, Signer, TokenSigner,
    jwk, random,
};
use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::RwLock;
use serde_json::{Value, json};

use super::{
    error::Error,
    held::InventoryKey,
    inventory::{self, NewKey, SigningKey},
    public_key::{PublicKey, Status},
    purpose::{PROGRAMME, Purpose, TOKENS},
    revocation,
    rotation::{self, NewRotation, Rotation},
};
use authority_process::clock::Clock;
use authority_store::{Db, Scope, Store};

/// The domain of the codes of API keys.
const API_KEYS: &str = "api-key";

/// All keys. Cloning copies one pointer.
#[derive(Clone)]
pub struct Keys(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) ring: Arc<KeyRing>,
    mac: Mac,
    /// The codes of API keys, which most calls need.
    api_keys: DomainMac,
    clock: Clock,
    store: Option<Store>,
    // The lock is held only while the pointer is copied.
    loaded: RwLock<Arc<Loaded>>,
}

/// A consistent snapshot of the inventory. A refresh replaces it.
pub(super) struct Loaded {
    signers: [Arc<Signer>; Purpose::ALL.len()],
    tokens: Option<Arc<TokenSigner>>,
    programme: Option<Arc<Signer>>,
    /// The time from which receivers of webhooks can know the current signing key.
    webhooks_from: DateTime<Utc>,
    public: HashMap<String, Arc<PublicKey>>,
    jwks: Arc<str>,
    token_jwks: Arc<str>,
}

impl Keys {
    /// Creates keys that exist only in this process and are not stored: for tests and benchmarks.
    pub fn ephemeral(clock: Clock) -> Result<Self, Error> {
        let ring = Arc::new(KeyRing::parse(&KeyRing::generate()?)?);
        let now = clock.now();
        let mut held = Vec::new();
        for purpose in Purpose::ALL {
            held.push(InventoryKey::make(purpose.slug(), Algorithm::EdDsa, Pair::ed25519()?, now)?);
        }
        held.push(InventoryKey::make(TOKENS, Algorithm::Rs256, Pair::rsa()?, now)?);
        let loaded = RwLock::new(Arc::new(Loaded::of(held)?));
        let mac = Mac::new(&random()?);
        let api_keys = mac.within(API_KEYS);
        Ok(Self(Arc::new(Inner { ring, mac, api_keys, clock, store: None, loaded })))
    }

    /// Loads the keys from the database and creates missing ones.
    ///
    /// If two nodes start at the same time, only one creates them. With `tokens`, the development
    /// identity provider also gets a key.
    pub async fn start(
        store: Store,
        ring: KeyRing,
        clock: Clock,
        tokens: bool,
    ) -> Result<Self, Error> {
        let (now, ring) = (clock.now(), Arc::new(ring));
        let shared = Arc::clone(&ring);
        let (root, held) = store
            .write_tx(&Scope::service(), async move |db| {
                inventory::lock(db).await?;
                let root = inventory::mac_root(db, &shared, now).await?;
                let wanted = Purpose::ALL.iter().map(|p| p.slug()).chain(tokens.then_some(TOKENS));
                let wanted: Vec<_> = wanted.collect();
                inventory::make_missing(db, &shared, now, &wanted).await?;
                Ok::<_, Error>((root, inventory::hold(db, &shared).await?))
            })
            .await?;
        let (mac, loaded) = (Mac::new(&root), RwLock::new(Arc::new(Loaded::of(held)?)));
        let api_keys = mac.within(API_KEYS);
        Ok(Self(Arc::new(Inner { ring, mac, api_keys, clock, store: Some(store), loaded })))
    }

    /// Returns the current signing key. Fetch it once for each batch.
    pub fn signer(&self, purpose: Purpose) -> Arc<Signer> {
        let loaded = self.0.loaded.read();
        Arc::clone(&loaded.signers[purpose as usize])
    }

    /// Returns the key that signs webhook deliveries.
    ///
    /// Returns `None` after a revocation, while the successor has been published too recently for
    /// receivers to know it.
    pub fn webhook_signer(&self) -> Option<Arc<Signer>> {
        let loaded = self.0.loaded.read();
        let known = loaded.webhooks_from <= self.0.clock.now();
        known.then(|| Arc::clone(&loaded.signers[Purpose::Webhook as usize]))
    }

    /// Returns the key that signs certifications of consultants. Creates it if it does not exist.
    pub async fn programme_signer(&self) -> Result<Arc<Signer>, Error> {
        let known = || self.0.loaded.read().programme.clone();
        if let Some(signer) = known() {
            return Ok(signer);
        }
        let (ring, now) = (Arc::clone(&self.0.ring), self.0.clock.now());
        self.store()?
            .write_tx(&Scope::service(), async move |db| {
                inventory::lock(db).await?;
                inventory::make_missing(db, &ring, now, &[PROGRAMME]).await
            })
            .await?;
        self.refresh().await?;
        known().ok_or(Error::NoSigner(PROGRAMME))
    }

    /// Returns the key of the development identity provider, if that provider runs.
    pub fn token_signer(&self) -> Option<Arc<TokenSigner>> {
        self.0.loaded.read().tokens.clone()
    }

    /// Returns the document for `/.well-known/jwks.json`.
    ///
    /// The document contains all keys except revoked webhook keys and the key of the development
    /// identity provider. That provider's tokens are valid only for this process.
    pub fn jwks(&self) -> Arc<str> {
        Arc::clone(&self.0.loaded.read().jwks)
    }

    /// Returns the JWKS of the development identity provider.
    pub fn token_jwks(&self) -> Arc<str> {
        Arc::clone(&self.0.loaded.read().token_jwks)
    }

    pub fn public(&self, kid: &str) -> Option<Arc<PublicKey>> {
        self.0.loaded.read().public.get(kid).cloned()
    }

    /// Returns the public halves of all Ed25519 keys that sign, or have signed, for this purpose.
    pub fn ed25519_of(&self, purpose: Purpose) -> Vec<[u8; 32]> {
        let loaded = self.0.loaded.read();
        let keys = loaded.public.values();
        let managed = keys.filter(|key| key.managed && key.purpose == purpose.slug());
        managed.filter_map(|key| jwk::bytes(&key.jwk, "x").ok()?.try_into().ok()).collect()
    }

    pub fn verify(&self, kid: &str, bytes: &[u8], signature: &[u8]) -> Result<(), Error> {
        let key = self.public(kid).ok_or_else(|| Error::UnknownKid(kid.to_owned()))?;
        key.verify(bytes, signature)
    }

    /// Computes a message authentication code that only this installation can compute.
    ///
    /// The code is the same on every node and for the installation's lifetime.
    pub fn mac(&self, domain: &str, bytes: &[u8]) -> [u8; 32] {
        self.0.mac.code(domain, bytes)
    }

    /// Computes the message authentication code of an API key.
    pub fn api_key_mac(&self, key: &[u8]) -> [u8; 32] {
        self.0.api_keys.code(key)
    }

    /// Returns the codes for the names of erased people.
    pub fn erased_names(&self) -> ErasedNames {
        let keys = self.clone();
        ErasedNames::new(move |domain, bytes| keys.mac(domain, bytes))
    }

    /// Encrypts a secret, bound to `associated` (such as `tenant|kid|alg|purpose`).
    pub fn seal(&self, associated: &[u8], plain: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.0.ring.seal(associated, plain)?)
    }

    pub fn open(&self, associated: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.0.ring.open(associated, sealed)?)
    }

    /// Reloads the inventory, including changes by other nodes.
    ///
    /// If that fails, the loaded keys stay in use.
    pub async fn refresh(&self) -> Result<(), Error> {
        let ring = Arc::clone(&self.0.ring);
        let held = self
            .store()?
            .read_tx(&Scope::service(), async move |db| inventory::hold(db, &ring).await)
            .await?;
        *self.0.loaded.write() = Arc::new(Loaded::of(held)?);
        Ok(())
    }

    /// Lists the inventory by status (active, rotating, retired, revoked), then newest first.
    pub async fn list(&self) -> Result<Vec<SigningKey>, Error> {
        self.store()?.read_tx(&Scope::service(), async move |db| inventory::list(db).await).await
    }

    /// Generates a key pair for the inventory.
    ///
    /// Generating RSA is slow: do not do it inside a transaction.
    pub async fn pair(&self, algorithm: Algorithm) -> Result<Pair, Error> {
        let pair = tokio::task::spawn_blocking(move || Pair::inventory(algorithm)).await;
        Ok(pair.map_err(|_| crypto::Error::Generation)??)
    }

    /// Adds a key to the inventory. The service itself does not sign with such a key.
    ///
    /// Refresh after the commit.
    pub async fn create(
        &self,
        db: &mut Db,
        new: &NewKey,
        pair: &Pair,
    ) -> Result<SigningKey, Error> {
        inventory::make(db, &self.0.ring, new, pair, self.0.clock.now()).await
    }

    /// Revokes a key permanently.
    ///
    /// If the key is managed, its successor signs from then on: immediately on this node, and on
    /// other nodes from their next refresh.
    pub async fn revoke(&self, kid: &str, actor: &str) -> Result<SigningKey, Error> {
        let (ring, now) = (Arc::clone(&self.0.ring), self.0.clock.now());
        let (kid, scope) = (kid.to_owned(), Scope { actor: actor.to_owned(), ..Scope::service() });
        let revoked = self
            .store()?
            .write_tx(&scope, async move |db| revocation::revoke(db, &ring, &kid, now).await)
            .await?;
        self.refresh().await?;
        Ok(revoked)
    }

    /// Returns the unfinished rotations, the next due first.
    pub async fn rotations(&self) -> Result<Vec<Rotation>, Error> {
        self.store()?.read_tx(&Scope::service(), async move |db| rotation::open(db).await).await
    }

    /// Plans a rotation.
    pub async fn schedule(&self, db: &mut Db, new: NewRotation) -> Result<Rotation, Error> {
        rotation::schedule(db, new, self.0.clock.now()).await
    }

    /// Completes a rotation immediately. Refresh after the commit.
    pub async fn complete(&self, db: &mut Db, id: &str) -> Result<Rotation, Error> {
        rotation::complete(db, &self.0.ring, id, self.0.clock.now()).await
    }

    /// Cancels a rotation. Refresh after the commit.
    pub async fn cancel(&self, db: &mut Db, id: &str) -> Result<Rotation, Error> {
        rotation::cancel(db, id, self.0.clock.now()).await
    }

    /// Takes the rotation steps that are due. Returns their number.
    pub async fn rotate(&self) -> Result<usize, Error> {
        let (ring, now) = (Arc::clone(&self.0.ring), self.0.clock.now());
        let steps = self
            .store()?
            .write_tx(&Scope::service(), async move |db| rotation::work(db, &ring, now).await)
            .await?;
        if steps > 0 {
            self.refresh().await?;
        }
        Ok(steps)
    }

    pub(super) fn store(&self) -> Result<&Store, Error> {
        self.0.store.as_ref().ok_or(Error::Ephemeral)
    }
}

/// How long a webhook key is published before it signs, unless it is the first key.
///
/// In a rotation, the new key is published for longer than this. The limit is therefore relevant
/// only after a revocation.
const WEBHOOKS_PUBLISHED: TimeDelta = TimeDelta::minutes(10);

/// Returns when receivers can know the webhook key with this kid. The first key is known at once.
fn webhooks_from(held: &[InventoryKey], kid: &str) -> DateTime<Utc> {
    let mut of_webhooks = held.iter().filter(|h| h.is_for(Purpose::Webhook.slug()));
    let first = of_webhooks.clone().map(|h| h.created_at).min().unwrap_or_default();
    let signs = of_webhooks.find(|h| h.public.kid == kid).map_or(first, |h| h.created_at);
    if signs == first { first } else { signs + WEBHOOKS_PUBLISHED }
}

/// Whether a key is part of the JWKS.
///
/// Revoked webhook keys are not listed, because a webhook's receiver trusts each listed key.
/// Revoked evidence keys stay listed, with their revocation: their earlier signatures remain valid.
fn is_published(key: &PublicKey) -> bool {
    key.purpose != Purpose::Webhook.slug() || key.status != Status::Revoked
}

/// Returns the key that signs for a purpose. During a rotation, this is still the old key.
fn signer<'h>(held: &'h [InventoryKey], purpose: &str) -> Option<(&'h String, &'h [u8])> {
    [Status::Rotating, Status::Active].into_iter().find_map(|status| {
        held.iter().find_map(|h| Some((&h.public.kid, h.signs(purpose, status)?)))
    })
}

impl Loaded {
    pub(super) fn of(held: Vec<InventoryKey>) -> Result<Self, Error> {
        let signing_for = |purpose: &'static str| {
            let found = signer(&held, purpose);
            let (kid, private) = found.ok_or(Error::NoSigner(purpose))?;
            Ok::<_, Error>(Arc::new(Signer::read(kid, private)?))
        };
        let signing = |purpose: Purpose| signing_for(purpose.slug());
        let signers = [
            signing(Purpose::Evidence)?,
            signing(Purpose::Log)?,
            signing(Purpose::Replay)?,
            signing(Purpose::Webhook)?,
        ];
        let webhooks_from = webhooks_from(&held, signers[Purpose::Webhook as usize].kid());
        let programme = signer(&held, PROGRAMME).map(|_| signing_for(PROGRAMME)).transpose()?;
        let tokens = signer(&held, TOKENS);
        let tokens = tokens.map(|(kid, private)| TokenSigner::read(kid, private)).transpose()?;
        let (of_tokens, others): (Vec<_>, Vec<_>) = held
            .iter()
            .map(|h| &h.public)
            .filter(|public| is_published(public))
            .partition(|public| public.managed && public.purpose == TOKENS);
        let (jwks, token_jwks) = (set(&others), set(&of_tokens));
        let public = held.into_iter().map(|h| (h.public.kid.clone(), Arc::new(h.public))).collect();
        let tokens = tokens.map(Arc::new);
        Ok(Self { signers, tokens, programme, webhooks_from, public, jwks, token_jwks })
    }
}

fn set(keys: &[&PublicKey]) -> Arc<str> {
    let keys: Vec<Value> = keys.iter().map(|key| key.published()).collect();
    json!({"keys": keys}).to_string().into()
}
