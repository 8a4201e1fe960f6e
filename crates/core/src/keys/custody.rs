//! The keys that this process holds, ready for use.

use std::{collections::HashMap, sync::Arc};

use authority_crypto::{
    self as crypto, Algorithm, KeyRing, Mac, Pair, Signer, TokenSigner, jwk, random,
};
use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::RwLock;
use serde_json::{Value, json};

use super::{
    Error, NewKey, PublicKey, SigningKey, Status, console_session, endpoint,
    held::Held,
    inventory,
    purpose::{PROGRAMME, Purpose, TOKENS},
    push_subscription, revocation,
    rotation::{self, NewRotation, Rotation},
};
use crate::{
    clock::Clock,
    erased_names::ErasedNames,
    store::{Db, Scope, Store},
};

/// All keys. Clone it freely: it is one pointer.
#[derive(Clone)]
pub struct Keys(Arc<Inner>);

struct Inner {
    ring: Arc<KeyRing>,
    mac: Mac,
    clock: Clock,
    store: Option<Store>,
    // Held only while the pointer is copied.
    loaded: RwLock<Arc<Loaded>>,
}

/// A consistent snapshot of the inventory; a refresh replaces it.
pub(super) struct Loaded {
    signers: [Arc<Signer>; Purpose::ALL.len()],
    tokens: Option<Arc<TokenSigner>>,
    programme: Option<Arc<Signer>>,
    /// From when on receivers of webhooks can know the key that signs them.
    webhooks_from: DateTime<Utc>,
    public: HashMap<String, Arc<PublicKey>>,
    jwks: Arc<str>,
    token_jwks: Arc<str>,
}

impl Keys {
    /// Keys that exist only in this process and are not stored: for tests and benchmarks.
    pub fn ephemeral(clock: Clock) -> Result<Self, Error> {
        let ring = Arc::new(KeyRing::parse(&KeyRing::generate()?)?);
        let now = clock.now();
        let mut held = Vec::new();
        for purpose in Purpose::ALL {
            held.push(Held::make(purpose.slug(), Algorithm::EdDsa, Pair::ed25519()?, now)?);
        }
        held.push(Held::make(TOKENS, Algorithm::Rs256, Pair::rsa()?, now)?);
        let loaded = RwLock::new(Arc::new(Loaded::of(held)?));
        Ok(Self(Arc::new(Inner { ring, mac: Mac::new(&random()?), clock, store: None, loaded })))
    }

    /// Loads the keys from the database and creates missing ones; of two nodes that start at the
    /// same time, one creates them. `tokens`: also a key for the development identity provider.
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
        Ok(Self(Arc::new(Inner { ring, mac, clock, store: Some(store), loaded })))
    }

    /// The current signing key. Fetch it once for each batch.
    pub fn signer(&self, purpose: Purpose) -> Arc<Signer> {
        let loaded = self.0.loaded.read();
        Arc::clone(&loaded.signers[purpose as usize])
    }

    /// The key that signs webhook deliveries; `None` while its successor, after a revocation, was published
    /// too recently for receivers to know it.
    pub fn webhook_signer(&self) -> Option<Arc<Signer>> {
        let loaded = self.0.loaded.read();
        let known = loaded.webhooks_from <= self.0.clock.now();
        known.then(|| Arc::clone(&loaded.signers[Purpose::Webhook as usize]))
    }

    /// The key that signs certifications of consultants; created if there is none yet.
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

    /// The development identity provider's key, if it runs.
    pub fn token_signer(&self) -> Option<Arc<TokenSigner>> {
        self.0.loaded.read().tokens.clone()
    }

    /// The document of `/.well-known/jwks.json`: every key except the development identity
    /// provider's, whose tokens are valid only for this process, and revoked keys of webhooks.
    pub fn jwks(&self) -> Arc<str> {
        Arc::clone(&self.0.loaded.read().jwks)
    }

    /// The development identity provider's own JWKS.
    pub fn token_jwks(&self) -> Arc<str> {
        Arc::clone(&self.0.loaded.read().token_jwks)
    }

    pub fn public(&self, kid: &str) -> Option<Arc<PublicKey>> {
        self.0.loaded.read().public.get(kid).cloned()
    }

    /// The public halves of every Ed25519 key that signs, or signed, for this purpose.
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

    /// A message authentication code that only this installation can compute: the same on every
    /// node and for the installation's lifetime.
    pub fn mac(&self, domain: &str, bytes: &[u8]) -> [u8; 32] {
        self.0.mac.code(domain, bytes)
    }

    /// What stands for the names of people who were erased.
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

    /// Reloads the inventory, with the keys that other nodes created, activated or revoked. If that
    /// fails, the keys loaded before stay in use.
    pub async fn refresh(&self) -> Result<(), Error> {
        let ring = Arc::clone(&self.0.ring);
        let held = self
            .store()?
            .read_tx(&Scope::service(), async move |db| inventory::hold(db, &ring).await)
            .await?;
        *self.0.loaded.write() = Arc::new(Loaded::of(held)?);
        Ok(())
    }

    /// The inventory by status (active, rotating, retired, revoked), then newest first.
    pub async fn list(&self) -> Result<Vec<SigningKey>, Error> {
        self.store()?.read_tx(&Scope::service(), async move |db| inventory::list(db).await).await
    }

    /// Generates a key pair for the inventory. RSA is slow to generate, and no transaction should
    /// wait for it.
    pub async fn pair(&self, algorithm: Algorithm) -> Result<Pair, Error> {
        let pair = tokio::task::spawn_blocking(move || Pair::inventory(algorithm)).await;
        Ok(pair.map_err(|_| crypto::Error::Generation)??)
    }

    /// Adds a key to the inventory. The service itself signs with none of these. Refresh after the
    /// commit.
    pub async fn create(
        &self,
        db: &mut Db,
        new: &NewKey,
        pair: &Pair,
    ) -> Result<SigningKey, Error> {
        inventory::make(db, &self.0.ring, new, pair, self.0.clock.now()).await
    }

    /// Revokes a key permanently. If it is managed, its successor signs from then on: on this node
    /// at once, on others from their next refresh.
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

    /// The unfinished rotations, the soonest due first.
    pub async fn rotations(&self) -> Result<Vec<Rotation>, Error> {
        self.store()?.read_tx(&Scope::service(), async move |db| rotation::open(db).await).await
    }

    /// Plans a rotation.
    pub async fn schedule(&self, db: &mut Db, new: NewRotation) -> Result<Rotation, Error> {
        rotation::schedule(db, new, self.0.clock.now()).await
    }

    /// Completes a rotation now. Refresh after the commit.
    pub async fn complete(&self, db: &mut Db, id: &str) -> Result<Rotation, Error> {
        rotation::complete(db, &self.0.ring, id, self.0.clock.now()).await
    }

    /// Cancels a rotation. Refresh after the commit.
    pub async fn cancel(&self, db: &mut Db, id: &str) -> Result<Rotation, Error> {
        rotation::cancel(db, id, self.0.clock.now()).await
    }

    /// Takes the steps of rotations that are due; returns their number.
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

    /// Rewraps every stored secret of this module, of webhook endpoints, push subscriptions and console sessions
    /// under the ring's current key;
    /// returns their number. Older ring keys may be removed once no other secrets are wrapped under them.
    pub async fn rewrap(&self) -> Result<usize, Error> {
        let ring = Arc::clone(&self.0.ring);
        self.store()?
            .write_tx(&Scope::service(), async move |db| {
                let own = inventory::rewrap(db, &ring).await? + endpoint::rewrap(db, &ring).await?;
                let pushed = push_subscription::rewrap(db, &ring).await?;
                Ok(own + pushed + console_session::rewrap(db, &ring).await?)
            })
            .await
    }

    fn store(&self) -> Result<&Store, Error> {
        self.0.store.as_ref().ok_or(Error::Ephemeral)
    }
}

/// How long a webhook key is published before it signs, unless it is the first. It is less than a rotation
/// leaves, so that it matters after a revocation.
const WEBHOOKS_PUBLISHED: TimeDelta = TimeDelta::minutes(10);

/// From when on receivers can know the webhook key with this kid. Before the first one they know none.
fn webhooks_from(held: &[Held], kid: &str) -> DateTime<Utc> {
    let mut of_webhooks = held.iter().filter(|h| h.is_for(Purpose::Webhook.slug()));
    let first = of_webhooks.clone().map(|h| h.created_at).min().unwrap_or_default();
    let signs = of_webhooks.find(|h| h.public.kid == kid).map_or(first, |h| h.created_at);
    if signs == first { first } else { signs + WEBHOOKS_PUBLISHED }
}

/// What a receiver of a webhook trusts it trusts at once, so a revoked key is not shown to it. Those of
/// evidence stay, with their revocation: what they signed before remains valid.
fn is_published(key: &PublicKey) -> bool {
    key.purpose != Purpose::Webhook.slug() || key.status != Status::Revoked
}

/// The key that signs for a purpose: during a rotation still the old one.
fn signer<'h>(held: &'h [Held], purpose: &str) -> Option<(&'h String, &'h [u8])> {
    [Status::Rotating, Status::Active].into_iter().find_map(|status| {
        held.iter().find_map(|h| Some((&h.public.kid, h.signs(purpose, status)?)))
    })
}

impl Loaded {
    pub(super) fn of(held: Vec<Held>) -> Result<Self, Error> {
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
