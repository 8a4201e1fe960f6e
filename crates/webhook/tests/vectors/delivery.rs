//! One delivery, signed with fixed keys, that a case changes.

use authority_crypto::{Signer, jwk};
use authority_webhook::{
    destination::{EndpointUrl, UrlRules},
    signing::{Attempt, Secret, SigningKeys, Suite, sign},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::DateTime;
use serde_json::{Value, json};

/// The time at which all deliveries are signed.
pub(crate) const AT: u64 = 1_790_000_000;
pub(crate) const URL: &str = "https://example.com/hooks";
pub(crate) const TENANT: &str = "svc:tenant:acme";
pub(crate) const EVENT: &str = "svc:event:0198c0ffee017c4f8a2d5b6e7f809a1b";

/// Canonical JSON (RFC 8785), with a letter outside ASCII.
pub(crate) fn body() -> String {
    format!(
        "{{\"correlation_id\":\"svc:del:acme:1\",\"data\":{{\"children\":2,\"note\":\"é\"}},\
         \"event_id\":\"{EVENT}\",\"event_type\":\"svc.authority.revoked\",\"event_version\":1,\
         \"evidence_refs\":[],\"occurred_at\":\"2026-09-21T14:13:20Z\",\"sequence\":7,\
         \"subject_ref\":\"svc:del:acme:1\",\"tenant_id\":\"{TENANT}\"}}"
    )
}

/// Key pairs of the table: PKCS #8 (RFC 5958) around `seed` repeated 32 times.
pub(crate) fn signer(purpose: &str, seed: u8) -> Signer {
    let head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let pkcs8 = [head.as_slice(), &[seed; 32]].concat();
    let public = jwk::ed25519(Signer::read("", &pkcs8).unwrap().public_key());
    Signer::read(&jwk::kid(purpose, 2026, &public).unwrap(), &pkcs8).unwrap()
}

/// The key as the JWKS shows it.
pub(crate) fn published(signer: &Signer) -> Value {
    let mut key = jwk::ed25519(signer.public_key());
    key["kid"] = signer.kid().into();
    key["alg"] = "EdDSA".into();
    key["use"] = "sig".into();
    key
}

pub(crate) fn secret(seed: u8) -> Secret {
    Secret::new([seed; 32])
}

/// Headers and body of one attempt.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Delivery {
    pub(crate) fn signed(suites: &[Suite]) -> Self {
        Self::signed_by(suites, &[secret(1)], &signer("webhook", 1), URL, &body())
    }

    pub(crate) fn signed_by(
        suites: &[Suite],
        secrets: &[Secret],
        signer: &Signer,
        url: &str,
        body: &str,
    ) -> Self {
        let url = EndpointUrl::parse(url, &UrlRules::default()).unwrap();
        let at = DateTime::from_timestamp(i64::try_from(AT).unwrap(), 0).unwrap();
        let attempt = Attempt { event_id: EVENT, url: &url, body: body.as_bytes(), at };
        let keys = SigningKeys { secrets, signer, issuer: "https://authority.example" };
        let headers = sign(&attempt, suites, &keys).unwrap().into_iter();
        let headers =
            headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        Self { headers: headers.collect(), body: body.to_owned() }
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self
    }

    pub(crate) fn get(&self, name: &str) -> &str {
        &self.headers.iter().find(|(own, _)| own == name).unwrap().1
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(own, _)| own != name);
        self.add(name, value)
    }

    pub(crate) fn add(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        let before = self.headers.len();
        self.headers.retain(|(own, _)| own != name);
        assert_ne!(self.headers.len(), before, "{name}");
        self
    }

    /// Replaces text in a header, which must contain it.
    pub(crate) fn replace(self, name: &str, from: &str, to: &str) -> Self {
        let value = self.get(name).to_owned();
        assert!(value.contains(from), "{name}: {value}");
        self.set(name, &value.replace(from, to))
    }

    /// Signs the current `signature-input`, as a signer with the service's key could.
    pub(crate) fn signed_again(self, method: &str) -> Self {
        let input = self.get("signature-input").strip_prefix("svc=").unwrap().to_owned();
        let names = input.split_once(')').unwrap().0.trim_start_matches('(').to_owned();
        let line = |name: &str| match name.trim_matches('"') {
            "@method" => format!("{name}: {method}\n"),
            "@target-uri" => format!("{name}: {URL}\n"),
            header => format!("{name}: {}\n", self.get(header)),
        };
        let lines: String = names.split(' ').map(line).collect();
        let base = format!("{lines}\"@signature-params\": {input}");
        let signature = STANDARD.encode(signer("webhook", 1).sign(base.as_bytes()));
        self.set("signature", &format!("svc=:{signature}:"))
    }

    /// A receiver's misconfiguration, whose error must contain the words in `mentions`.
    pub(crate) fn misread(&self, name: &str, url: &str, expect: &str, mentions: &[&str]) -> Value {
        let mut case = self.case(name, &json!({"url": url}), AT, expect);
        case["mentions"] = json!(mentions);
        case
    }

    /// The case's entry in the table: `options` override the common options.
    pub(crate) fn case(&self, name: &str, options: &Value, now: u64, expect: &str) -> Value {
        json!({"name": name, "body": self.body, "headers": self.headers, "options": options,
            "now": now, "expect": expect})
    }
}
