//! Digests, authentication codes and randomness.

use crate::{Mac, equal, random, sha256};

#[test]
fn sha_256_is_fips_180_4s_and_randomness_differs() {
    assert_ne!(random::<32>().unwrap(), random::<32>().unwrap());
    assert_eq!(
        hex::encode(sha256(b"abc")),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
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
