//! Verifies that a delivery is genuine and addressed to this receiver.

use authority_cli::{Failure, Jwks};
use authority_config::Secret;
use authority_ids::TenantRef;
use authority_process::clock::Clock;
use authority_verify_webhook::{Options, Suite, VerifyError, verify_webhook};
use axum::http::HeaderMap;
use serde_json::Value;

pub(super) struct Verifier {
    pub(super) secrets: Vec<Secret>,
    /// Whether the secret is the demonstration endpoint's secret, as of the server's start.
    pub(super) demonstration: bool,
    pub(super) jwks: Option<Jwks>,
    /// If empty, all suites with keys are accepted.
    pub(super) accept: Vec<Suite>,
    pub(super) url: String,
    pub(super) tenant_id: TenantRef,
    pub(super) clock: Clock,
}

impl Verifier {
    pub(super) fn checked(self) -> Result<Self, Failure> {
        match self.accept.iter().find(|suite| !self.has_keys(**suite)) {
            Some(Suite::StandardWebhooks) => {
                Err(Failure::usage("--accept standard-webhooks/v1 needs the endpoint's --secret"))
            }
            Some(suite) => Err(Failure::usage(format!("--accept {} needs --jwks", suite.as_str()))),
            None => Ok(self),
        }
    }

    fn has_keys(&self, suite: Suite) -> bool {
        match suite {
            Suite::StandardWebhooks => !self.secrets.is_empty(),
            Suite::Rfc9421 | Suite::Jwt => self.jwks.is_some(),
        }
    }

    /// The suites to verify.
    pub(super) fn suites(&self) -> Vec<Suite> {
        let accepts = |suite: &Suite| self.accept.is_empty() || self.accept.contains(suite);
        Suite::ALL.into_iter().filter(|suite| accepts(suite) && self.has_keys(*suite)).collect()
    }

    /// Returns a problem that prevents all verification: no keys, or the published keys cannot be
    /// fetched.
    pub(super) async fn problem(&self) -> Option<String> {
        match &self.jwks {
            Some(jwks) => jwks.fetched().await.err(),
            None => self.suites().is_empty().then(|| NO_KEYS.to_owned()),
        }
    }

    /// Returns the suites that signed a delivery, or the reason verification failed. Every accepted
    /// suite that signed it must match: an invalid signature is reported even if the signature of
    /// another suite is valid.
    pub(super) async fn verify(
        &self,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Vec<Suite>, String> {
        let text =
            |value: &'_ axum::http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut verified = Vec::new();
        for suite in self.suites() {
            if self.has_signed(suite, &headers, body).await? {
                verified.push(suite);
            }
        }
        match verified.as_slice() {
            [] if self.suites().is_empty() => Err(NO_KEYS.to_owned()),
            [] => Err(VerifyError::NoSignature.to_string()),
            _ => Ok(verified),
        }
    }

    /// Whether a suite has signed the delivery. Returns an error if the signature does not match.
    async fn has_signed(
        &self,
        suite: Suite,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<bool, String> {
        let problem = |why: &str| format!("{}: {why}", suite.as_str());
        let mut found = self.attempt(suite, headers, body, None);
        if let (Some(jwks), Suite::Rfc9421 | Suite::Jwt) = (&self.jwks, suite) {
            found = self.attempt(suite, headers, body, Some(&*jwks.known().await));
            if found == Err(VerifyError::UnknownKey) {
                let keys = jwks.fetched().await.map_err(|why| problem(&why))?;
                found = self.attempt(suite, headers, body, Some(&*keys));
            }
        }
        match found {
            Ok(()) => Ok(true),
            Err(VerifyError::NoSignature) => Ok(false),
            Err(error) => Err(problem(&format!("{error}{}", self.advice(suite, error)))),
        }
    }

    fn attempt(
        &self,
        suite: Suite,
        headers: &[(&str, &str)],
        body: &[u8],
        jwks: Option<&Value>,
    ) -> Result<(), VerifyError> {
        let secrets: Vec<_> = self.secrets.iter().map(Secret::reveal).collect();
        let accept = [suite];
        let options = Options {
            jwks,
            secrets: &secrets,
            accept: &accept,
            ..Options::new(&self.url, &self.tenant_id)
        };
        let now = u64::try_from(self.clock.now().timestamp()).unwrap_or_default();
        verify_webhook(body, headers, &options, now).map(drop)
    }

    /// The advice about a possibly wrong flag.
    fn advice(&self, suite: Suite, error: VerifyError) -> String {
        match (suite, error) {
            (Suite::StandardWebhooks, VerifyError::Signature) if self.demonstration => {
                "; if the endpoint's secret was rotated, give the new one with --secret".to_owned()
            }
            (Suite::StandardWebhooks, VerifyError::Signature) => {
                "; check that --secret is the current secret of this endpoint".to_owned()
            }
            (_, VerifyError::Signature | VerifyError::MessageSignature | VerifyError::Url) => {
                format!("; check that the endpoint's URL is {} (--url)", self.url)
            }
            (_, VerifyError::TenantId) => {
                format!("; the expected tenant is {} (--tenant)", self.tenant_id)
            }
            _ => String::new(),
        }
    }
}

const NO_KEYS: &str = "no verification key: give --secret or --jwks, or run this in the folder \
                       of the development server, or with its --data-dir";
