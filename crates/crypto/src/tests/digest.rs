//! Digests, authentication codes and randomness.

use crate::{Mac, equal, hmac_sha256, random, sha256};

#[test]
fn sha_256_is_fips_180_4s_and_randomness_differs() {
    assert_ne!(random::<32>().unwrap(), random::<32>().unwrap());
    assert_eq!(
        hex::encode(sha256(b"abc")),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn hmac_is_rfc_4231s() {
    let cases: [(&[u8], &[u8], &str); 2] = [
        (
            &[0x0b; 20],
            b"Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
    ];
    for (key, bytes, code) in cases {
        assert_eq!(hex::encode(hmac_sha256(key, bytes)), code);
    }
}

#[test]
fn a_code_is_made_with_a_key_of_its_domain() {
    let of_domain = hmac_sha256(&[1; 32], b"api-key");
    assert_eq!(Mac::new(&[1; 32]).code("api-key", b"x"), hmac_sha256(&of_domain, b"x"));
}

#[test]
fn codes_differ_by_domain_and_root() {
    let (one, other) = (Mac::new(&[1; 32]), Mac::new(&[2; 32]));
    assert_eq!(one.code("api-key", b"x"), one.code("api-key", b"x"));
    assert_ne!(one.code("api-key", b"x"), one.code("page-token", b"x"));
    assert_ne!(one.code("api-key", b"x"), other.code("api-key", b"x"));
}

#[test]
fn texts_are_equal_in_length_and_content() {
    assert!(equal(b"code", b"code") && equal(b"", b""));
    assert!(!equal(b"code", b"Code") && !equal(b"code", b"cod"));
}
