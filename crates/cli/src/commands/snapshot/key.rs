//! The key of a source, for signing its snapshots.

use std::{fs, path::Path};

use authority_crypto::{KeySigner, jwk};
use authority_model::{proto::reality::RealitySnapshot, wire::Json};
use authority_registry::signed_snapshot;
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use rustls_pki_types::{PrivatePkcs8KeyDer, pem::PemObject};
use serde_json::{Value, json};

use crate::outcome::Failure;

#[derive(Debug)]
pub(crate) struct Key {
    kid: String,
    signer: KeySigner,
}

impl Key {
    /// Reads the private key of `--sign`. Its kid is the thumbprint (RFC 7638) unless one was
    /// given.
    pub(super) fn read(file: &Path, kid: Option<String>) -> Result<Self, Failure> {
        let unusable = |why: &str| Failure::usage(format!("--sign: {}: {why}", file.display()));
        let pem = fs::read(file).map_err(|error| unusable(&error.to_string()))?;
        let key = PrivatePkcs8KeyDer::from_pem_slice(&pem).map_err(|_| {
            unusable(
                "holds no `BEGIN PRIVATE KEY`: make a key with `openssl genpkey -algorithm ed25519`, or \
                 convert yours with `openssl pkcs8 -topk8 -nocrypt`",
            )
        })?;
        let signer = KeySigner::read(key.secret_pkcs8_der());
        let signer = signer.map_err(|error| unusable(&error.to_string()))?;
        let print = jwk::thumbprint(signer.public_jwk());
        let print = print.map_err(|error| unusable(&error.to_string()))?;
        Ok(Self { kid: kid.unwrap_or_else(|| URL_SAFE_NO_PAD.encode(print)), signer })
    }

    pub(super) fn signature(&self, snapshot: &RealitySnapshot) -> Result<Json, Failure> {
        let text = signed_snapshot::text(snapshot).map_err(Failure::new)?;
        let value = self.signer.sign(&text).map_err(Failure::new)?;
        let members = [
            ("alg", self.signer.algorithm().name().to_owned()),
            ("kid", self.kid.clone()),
            ("value_b64", STANDARD.encode(value)),
        ];
        let members = members.map(|(name, value)| (name.to_owned(), Value::String(value)));
        Ok(Json(members.into_iter().collect()))
    }

    /// The public key, for the anchor.
    pub(super) fn public_jwk(&self) -> Value {
        let mut jwk = self.signer.public_jwk().clone();
        jwk["kid"] = json!(self.kid);
        jwk["alg"] = json!(self.signer.algorithm().name());
        jwk
    }
}

#[cfg(test)]
mod tests {
    use authority_crypto::{Algorithm, Pair, verify};
    use chrono::DateTime;

    use super::*;

    #[test]
    fn a_snapshot_is_signed_with_the_keys_own_algorithm() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.pem");
        let pair = Pair::inventory(Algorithm::Es384).unwrap();
        fs::write(&file, pair.private_pem()).unwrap();
        let key = Key::read(&file, Some("erp-1".to_owned())).unwrap();
        let snapshot = RealitySnapshot {
            sampled_at: Some(DateTime::UNIX_EPOCH.into()),
            ..RealitySnapshot::default()
        };
        let signature = key.signature(&snapshot).unwrap().0;
        assert_eq!((&signature["alg"], &signature["kid"]), (&json!("ES384"), &json!("erp-1")));
        let value = STANDARD.decode(signature["value_b64"].as_str().unwrap()).unwrap();
        let text = signed_snapshot::text(&snapshot).unwrap();
        assert!(verify(&key.public_jwk(), Algorithm::Es384, &text, &value).is_ok());
        let print = URL_SAFE_NO_PAD.encode(jwk::thumbprint(&pair.public_jwk).unwrap());
        assert_eq!(Key::read(&file, None).unwrap().public_jwk()["kid"], print);
    }

    #[test]
    fn a_file_without_a_key_is_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key.pem");
        let problem = || format!("{:?}", Key::read(&file, None).unwrap_err());
        assert!(problem().contains("--sign"));
        fs::write(&file, "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n")
            .unwrap();
        assert!(problem().contains("openssl pkcs8"), "{}", problem());
    }
}
