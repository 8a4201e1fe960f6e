//! A sign-in that has begun, sealed in a cookie of the browser that began it.

use authority_crypto::{Error, random, sha256};
use authority_keys::Keys;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::kit::prelude::*;

/// How long a person may take at the provider.
const LONGEST: TimeDelta = TimeDelta::minutes(15);

#[derive(Serialize, Deserialize)]
pub(super) struct Started {
    /// Ties the provider's response to this browser.
    pub(super) state: String,
    /// Ties the ID token to this sign-in.
    pub(super) nonce: String,
    /// The secret of PKCE (RFC 7636). The code is useless without it.
    pub(super) verifier: String,
    /// The issuer at which the person signs in. An answer of another provider is refused.
    pub(super) issuer: String,
    /// The page that was asked for.
    pub(super) to: String,
    /// Whether the person must prove anew who they are.
    pub(super) fresh: bool,
    began_at: i64,
}

impl Started {
    pub(super) fn new(
        issuer: &str,
        to: String,
        fresh: bool,
        now: DateTime<Utc>,
    ) -> Result<Self, Error> {
        let text = || Ok::<_, Error>(URL_SAFE_NO_PAD.encode(random::<32>()?));
        let (state, nonce, verifier) = (text()?, text()?, text()?);
        let (issuer, began_at) = (issuer.to_owned(), now.timestamp());
        Ok(Self { state, nonce, verifier, issuer, to, fresh, began_at })
    }

    /// The `code_challenge` of the method S256.
    pub(super) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(sha256(self.verifier.as_bytes()))
    }

    /// When it began, in seconds since 1970.
    pub(super) fn began_at(&self) -> i64 {
        self.began_at
    }

    /// Whether it began before this time; clocks may differ by half a minute.
    pub(super) fn precedes(&self, at: DateTime<Utc>) -> bool {
        at.timestamp() + 30 >= self.began_at
    }

    /// The cookie's value.
    pub(super) fn sealed(&self, keys: &Keys) -> Option<String> {
        let text = serde_json::to_vec(self).ok()?;
        Some(URL_SAFE_NO_PAD.encode(keys.seal_sign_in(&text).ok()?))
    }

    /// The sign-in of a cookie, if it is not too old.
    pub(super) fn opened(value: &str, keys: &Keys, now: DateTime<Utc>) -> Option<Self> {
        let sealed = URL_SAFE_NO_PAD.decode(value).ok()?;
        let started: Self = serde_json::from_slice(&keys.open_sign_in(&sealed).ok()?).ok()?;
        let age = now.timestamp().checked_sub(started.began_at)?;
        (0..=LONGEST.num_seconds()).contains(&age).then_some(started)
    }
}

/// The page to open after a sign-in: a page of the console, by default its first.
pub(super) fn own_path(asked: Option<&str>) -> String {
    let own = asked.filter(|path| {
        let rest = path.strip_prefix("/console");
        let within = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
        let plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        within
            && plain
            && path.len() <= 1000
            && !path.starts_with("/console/sign-")
            && !path.split(['/', '?']).any(|part| part == "..")
            // Browsers read `%2e` as a dot.
            && !path.to_ascii_lowercase().contains("%2e")
    });
    own.unwrap_or("/console").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_leads_to_own_pages_alone() {
        for (asked, leads) in [
            ("/console/approvals/svc:approval:1?x=y", "/console/approvals/svc:approval:1?x=y"),
            ("/console", "/console"),
            ("/console/%2E%2e/receipts", "/console"),
            ("//evil.example", "/console"),
            ("/console.evil", "/console"),
            ("https://evil.example/console", "/console"),
            ("/console/../v1", "/console"),
            ("/console/\\evil", "/console"),
            ("/console/a\r\nset-cookie: x", "/console"),
            ("/console/sign-out", "/console"),
            ("/console/sign-out/done", "/console"),
            ("", "/console"),
        ] {
            assert_eq!(own_path(Some(asked)), leads, "{asked}");
        }
        assert_eq!(own_path(None), "/console");
    }
}
