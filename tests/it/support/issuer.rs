//! An identity provider for tests that signs tokens with a key of any type and publishes its keys.

use std::sync::Arc;

use authority_keys::Keys;
use authority_process::clock::Clock;
use axum::{Router, http::StatusCode, response::IntoResponse, routing::get};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The `kid` of every issuer's key, unless a test sets another one.
pub(crate) const KID: &str = "key-1";

enum SigningKey {
    Rsa(Keys),
    P256(Box<EcdsaKeyPair>),
    Ed25519(Ed25519KeyPair),
}

/// An issuer with one key. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TestIssuer {
    /// The value of `iss`.
    pub(crate) iss: String,
    key: Arc<SigningKey>,
    /// The status and the body with which the keys are published.
    pub(crate) published: Arc<Mutex<(u16, String)>>,
}

impl TestIssuer {
    pub(crate) fn rs256(iss: &str) -> Self {
        Self::new(iss, SigningKey::Rsa(Keys::ephemeral(Clock::default()).unwrap()))
    }

    pub(crate) fn es256(iss: &str) -> Self {
        let (curve, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let text = EcdsaKeyPair::generate_pkcs8(curve, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(curve, text.as_ref(), &random).unwrap();
        Self::new(iss, SigningKey::P256(Box::new(pair)))
    }

    pub(crate) fn eddsa(iss: &str) -> Self {
        let text = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::new(iss, SigningKey::Ed25519(Ed25519KeyPair::from_pkcs8(text.as_ref()).unwrap()))
    }

    fn new(iss: &str, key: SigningKey) -> Self {
        let published = Arc::new(Mutex::new((200, String::new())));
        let issuer = Self { iss: iss.to_owned(), key: Arc::new(key), published };
        let keys = json!({"keys": [issuer.jwk()]}).to_string();
        issuer.published.lock().1 = keys;
        issuer
    }

    /// The algorithm of the key.
    pub(crate) fn alg(&self) -> &'static str {
        match &*self.key {
            SigningKey::Rsa(_) => "RS256",
            SigningKey::P256(_) => "ES256",
            SigningKey::Ed25519(_) => "EdDSA",
        }
    }

    /// The public key as a JWK without `alg`, which is optional.
    pub(crate) fn jwk(&self) -> Value {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &*self.key {
            SigningKey::Rsa(keys) => {
                let document: Value = serde_json::from_str(&keys.token_jwks()).unwrap();
                let own = &document["keys"][0];
                json!({"kty": "RSA", "kid": KID, "use": "sig", "n": own["n"], "e": own["e"]})
            }
            SigningKey::P256(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "kid": KID, "use": "sig",
                       "x": encode(&point[1..33]), "y": encode(&point[33..])})
            }
            SigningKey::Ed25519(pair) => {
                let x = encode(pair.public_key().as_ref());
                json!({"kty": "OKP", "crv": "Ed25519", "kid": KID, "use": "sig", "x": x})
            }
        }
    }

    /// Returns a token with the issuer's own `iss` and `alg`.
    pub(crate) fn token(&self, claims: &Value) -> String {
        let mut all = json!({"iss": self.iss});
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        self.sign(&json!({"alg": self.alg(), "typ": "JWT", "kid": KID}), &all)
    }

    /// Returns a token with exactly this header and these claims.
    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        self.signed(header, &claims.to_string())
    }

    /// Returns a token with exactly this text as its claims.
    pub(crate) fn sign_text(&self, claims: &str) -> String {
        self.signed(&json!({"alg": self.alg(), "typ": "JWT", "kid": KID}), claims)
    }

    fn signed(&self, header: &Value, claims: &str) -> String {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let text = format!("{}.{}", encode(&header.to_string()), encode(claims));
        let signature = match &*self.key {
            SigningKey::Rsa(keys) => keys.token_signer().unwrap().sign(text.as_bytes()).unwrap(),
            SigningKey::P256(pair) => {
                pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap().as_ref().to_vec()
            }
            SigningKey::Ed25519(pair) => pair.sign(text.as_bytes()).as_ref().to_vec(),
        };
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Publishes the keys over HTTP until the test's runtime ends. Returns the address.
    pub(crate) async fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let published = Arc::clone(&self.published);
        let answer = async move || {
            let (status, body) = published.lock().clone();
            (StatusCode::from_u16(status).unwrap(), body).into_response()
        };
        let router = Router::new().route("/keys", get(answer));
        tokio::spawn(axum::serve(listener, router).into_future());
        url
    }
}
