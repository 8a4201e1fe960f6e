//! Issued codes. Each is valid once, for a minute, with its PKCE verifier.

use std::collections::HashMap;

use authority_api::identity::dev_provider::Holder;
use authority_crypto::{equal, random, sha256};
use authority_process::clock::Clock;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use parking_lot::Mutex;

use crate::kit::prelude::*;

const LASTS: TimeDelta = TimeDelta::minutes(1);

/// The grant that a code stands for.
pub(super) struct Grant {
    pub(super) holder: Holder,
    pub(super) nonce: String,
    /// The `code_challenge` of PKCE, by the method S256.
    pub(super) challenge: String,
}

pub(super) struct Codes {
    clock: Clock,
    given: Mutex<HashMap<String, (Grant, DateTime<Utc>)>>,
}

impl Codes {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, given: Mutex::default() }
    }

    pub(super) fn give(&self, grant: Grant) -> Option<String> {
        let code = hex::encode(random::<16>().ok()?);
        let now = self.clock.now();
        let mut given = self.given.lock();
        given.retain(|_, (_, at)| now - *at < LASTS);
        given.insert(code.clone(), (grant, now));
        Some(code)
    }

    /// Takes the code's grant. Also returns when the code was issued, in seconds since 1970.
    pub(super) fn take(&self, code: &str, verifier: &str) -> Option<(Grant, i64)> {
        let (grant, at) = self.given.lock().remove(code)?;
        let challenge = URL_SAFE_NO_PAD.encode(sha256(verifier.as_bytes()));
        let is_theirs = equal(challenge.as_bytes(), grant.challenge.as_bytes());
        (is_theirs && self.clock.now() - at < LASTS).then(|| (grant, at.timestamp()))
    }
}
