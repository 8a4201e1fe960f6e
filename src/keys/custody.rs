//! The keys that this process holds, ready for use.

use std::{collections::HashMap, sync::Arc};

use chrono::Datelike;
use parking_lot::RwLock;
use serde_json::{Value, json};

use super::{
    Algorithm, Error, KeyRing, Mac, Pair, PublicKey, Signer, Status, TokenSigner, jwk, random,
};
use crate::clock::Clock;

/// What the service signs; each with a key of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Decision records and evidence packs.
    Evidence,
    /// Checkpoints of the transparency logs.
    Log,
    /// Replay proofs.
    Replay,
    /// Webhook envelopes.
    Webhook,
}

impl Purpose {
    pub const ALL: [Self; 4] = [Self::Evidence, Self::Log, Self::Replay, Self::Webhook];

    pub fn slug(self) -> &'static str {
        match self {
            Self::Evidence => "evidence",
            Self::Log => "log",
            Self::Replay => "replay",
            Self::Webhook => "webhook",
        }
    }
}

/// Purpose of the key that signs the development identity provider's tokens.
pub(super) const TOKENS: &str = "dev-idp";

/// All keys. Clone it freely: it is one pointer.
#[derive(Clone)]
pub struct Keys(Arc<Inner>);

struct Inner {
    ring: KeyRing,
    mac: Mac,
    clock: Clock,
    // Taken only for the moment it takes to copy the pointer.
    loaded: RwLock<Arc<Loaded>>,
}

/// One consistent picture of the inventory; a refresh makes the next one.
pub(super) struct Loaded {
    signers: [Arc<Signer>; Purpose::ALL.len()],
    tokens: Option<Arc<TokenSigner>>,
    public: HashMap<String, Arc<PublicKey>>,
    jwks: Arc<str>,
    token_jwks: Arc<str>,
}

impl Keys {
    /// Keys that live and die with this process, stored nowhere: for tests and measurements.
    pub fn ephemeral(clock: Clock) -> Result<Self, Error> {
        let ring = KeyRing::parse(&KeyRing::generate()?)?;
        let year = clock.now().year();
        let mut held = Vec::new();
        for purpose in Purpose::ALL {
            held.push(Held::make(purpose.slug(), Algorithm::EdDsa, Pair::ed25519()?, year)?);
        }
        held.push(Held::make(TOKENS, Algorithm::Rs256, Pair::rsa()?, year)?);
        let loaded = RwLock::new(Arc::new(Loaded::of(held)?));
        Ok(Self(Arc::new(Inner { ring, mac: Mac::new(&random()?), clock, loaded })))
    }

    /// The key that signs now. Take it once for a batch; take it anew for the next.
    pub fn signer(&self, purpose: Purpose) -> Arc<Signer> {
        let loaded = self.0.loaded.read();
        Arc::clone(&loaded.signers[purpose as usize])
    }

    /// The development identity provider's key, where there is one.
    pub fn token_signer(&self) -> Option<Arc<TokenSigner>> {
        self.0.loaded.read().tokens.clone()
    }

    /// The document of `/.well-known/jwks.json`: every key but the development identity
    /// provider's, whose tokens concern nobody but this process.
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

    pub fn verify(&self, kid: &str, bytes: &[u8], signature: &[u8]) -> Result<(), Error> {
        let key = self.public(kid).ok_or_else(|| Error::UnknownKid(kid.to_owned()))?;
        key.verify(bytes, signature)
    }

    /// A code only this installation can make: the same on every node, and for as long as the
    /// installation lives.
    pub fn mac(&self, domain: &str, bytes: &[u8]) -> [u8; 32] {
        self.0.mac.code(domain, bytes)
    }

    /// Seals a secret for the place that `associated` names (say `tenant|kid|alg|purpose`).
    pub fn seal(&self, associated: &[u8], plain: &[u8]) -> Result<Vec<u8>, Error> {
        self.0.ring.seal(associated, plain)
    }

    pub fn open(&self, associated: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Error> {
        self.0.ring.open(associated, sealed)
    }

    /// Reads the inventory again: what another node made, activated or revoked.
    pub async fn refresh(&self) -> Result<(), Error> {
        let _ = &self.0.clock;
        std::future::ready(Ok(())).await
    }
}

/// A key of the inventory, opened.
pub(super) struct Held {
    pub public: PublicKey,
    /// PKCS #8; only the managed keys that may sign are opened.
    pub private: Option<Vec<u8>>,
}

impl Held {
    pub(super) fn make(
        purpose: &str,
        algorithm: Algorithm,
        pair: Pair,
        year: i32,
    ) -> Result<Self, Error> {
        let public = PublicKey {
            kid: jwk::kid(purpose, year, &pair.public_jwk)?,
            algorithm,
            purpose: purpose.to_owned(),
            managed: true,
            status: Status::Active,
            revoked_at: None,
            jwk: pair.public_jwk,
        };
        Ok(Self { public, private: Some(pair.private) })
    }

    fn signs(&self, purpose: &str) -> Option<&[u8]> {
        let public = &self.public;
        let may = public.managed && public.status == Status::Active && public.purpose == purpose;
        self.private.as_deref().filter(|_| may)
    }
}

impl Loaded {
    pub(super) fn of(held: Vec<Held>) -> Result<Self, Error> {
        let signer = |purpose: Purpose| {
            let found = held.iter().find_map(|h| Some((&h.public.kid, h.signs(purpose.slug())?)));
            let (kid, private) = found.ok_or(Error::NoSigner(purpose.slug()))?;
            Signer::read(kid, private).map(Arc::new)
        };
        let signers = [
            signer(Purpose::Evidence)?,
            signer(Purpose::Log)?,
            signer(Purpose::Replay)?,
            signer(Purpose::Webhook)?,
        ];
        let tokens = held.iter().find_map(|h| Some((&h.public.kid, h.signs(TOKENS)?)));
        let tokens = tokens.map(|(kid, private)| TokenSigner::read(kid, private)).transpose()?;
        let (of_tokens, others): (Vec<_>, Vec<_>) = held
            .iter()
            .map(|h| &h.public)
            .partition(|public| public.managed && public.purpose == TOKENS);
        let (jwks, token_jwks) = (set(&others), set(&of_tokens));
        let public = held.into_iter().map(|h| (h.public.kid.clone(), Arc::new(h.public))).collect();
        Ok(Self { signers, tokens: tokens.map(Arc::new), public, jwks, token_jwks })
    }
}

fn set(keys: &[&PublicKey]) -> Arc<str> {
    let keys: Vec<Value> = keys.iter().map(|key| key.published()).collect();
    json!({"keys": keys}).to_string().into()
}
