//! Decisions with an observing version that has become unreadable.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path, sync::Arc};

use authority_crypto::sha256;
use authority_evidence::{Sealed, digest_text, sealed::Outcome, verify::sealed_in};
use serde_json::{Value, json};
use serde_json_canonicalizer::to_vec;

/// Returns the decision as it would be with an observing version of this text among its facts.
fn observed(sealed: &Sealed, text: &str) -> Sealed {
    let mut gathered: Value = serde_json::from_slice(sealed.gathered().unwrap()).unwrap();
    let mut version = gathered["policies"][0].clone();
    version["id"] = json!("svc:ent:acme:policy:observed");
    let digest = hex::encode(sha256(text.as_bytes()));
    version["sha256"] = json!(digest);
    gathered["observing"] = json!([version]);
    let gathered = to_vec(&gathered).unwrap();
    let mut facts: Value = serde_json::from_slice(&sealed.facts).unwrap();
    facts["gathered"] = json!(digest_text(&sha256(&gathered)));
    let mut texts = (*sealed.texts).clone();
    texts.insert(digest, text.to_owned());
    Sealed {
        facts: to_vec(&facts).unwrap(),
        gathered: Some(Arc::new(gathered)),
        texts: Arc::new(texts),
        ..sealed.clone()
    }
}

#[test]
fn a_decision_replays_although_an_observing_text_no_longer_compiles() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/policy_denied-1.json");
    let sealed = sealed_in(&fs::read(file).unwrap()).unwrap();
    let before = sealed.decide_again().unwrap();
    for text in ["permit nothing", "permit (principal, action, resource);"] {
        let observed = observed(&sealed, text);
        let again = observed.decide_again().unwrap();
        // The same facts have the same digest, which the record has.
        assert_eq!(String::from_utf8(again.written.facts), String::from_utf8(observed.facts));
        assert_eq!(Outcome::from(&again.verdict), Outcome::from(&before.verdict), "{text}");
    }
}
