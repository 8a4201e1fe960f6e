//! Signs with a key of each kind and verifies with its public half.

use crate::{Algorithm, Error, KeySigner, Pair, verify};

#[test]
fn each_kind_of_key_signs_with_its_algorithm() {
    let inventory = |algorithm| Pair::inventory(algorithm).unwrap();
    for (algorithm, pair) in [
        (Algorithm::EdDsa, Pair::ed25519().unwrap()),
        (Algorithm::Es256, inventory(Algorithm::Es256)),
        (Algorithm::Es384, inventory(Algorithm::Es384)),
        (Algorithm::Rs256, inventory(Algorithm::Rs256)),
    ] {
        let signer = KeySigner::read(&pair.private).unwrap();
        assert_eq!((signer.algorithm(), signer.public_jwk()), (algorithm, &pair.public_jwk));
        let signature = signer.sign(b"text").unwrap();
        assert!(verify(&pair.public_jwk, algorithm, b"text", &signature).is_ok(), "{signer:?}");
        assert!(verify(&pair.public_jwk, algorithm, b"other", &signature).is_err(), "{signer:?}");
    }
}

#[test]
fn what_is_no_key_is_refused() {
    assert!(matches!(KeySigner::read(b"key"), Err(Error::BadKey(_))));
}
