//! Tests the key ring and secrets encrypted under it.

use crate::{Error, KeyRing};

fn ring() -> KeyRing {
    KeyRing::parse(&KeyRing::generate().unwrap()).unwrap()
}

#[test]
fn sealed_bytes_open_in_their_place_alone() {
    let ring = ring();
    let sealed = ring.seal(b"svc:tenant:acme|k|EdDSA|log", b"secret").unwrap();
    assert_eq!(ring.open(b"svc:tenant:acme|k|EdDSA|log", &sealed).unwrap(), b"secret");
    let moved = ring.open(b"svc:tenant:other|k|EdDSA|log", &sealed);
    assert!(matches!(moved, Err(Error::Sealed)));
    assert!(!sealed.windows(6).any(|part| part == b"secret"));
    assert_ne!(sealed, ring.seal(b"svc:tenant:acme|k|EdDSA|log", b"secret").unwrap());
}

#[test]
fn every_altered_or_missing_byte_is_noticed() {
    let ring = ring();
    let sealed = ring.seal(b"place", b"secret").unwrap();
    for index in 0..sealed.len() {
        let mut altered = sealed.clone();
        altered[index] ^= 1;
        assert!(ring.open(b"place", &altered).is_err(), "byte {index}");
        assert!(ring.open(b"place", &sealed[..index]).is_err(), "length {index}");
    }
}

#[test]
fn another_ring_does_not_open() {
    let sealed = ring().seal(b"", b"secret").unwrap();
    assert!(matches!(ring().open(b"", &sealed), Err(Error::UnknownRingKey(_))));
    let (one, two) = (KeyRing::generate().unwrap(), KeyRing::generate().unwrap());
    let same_id = |text: &str| KeyRing::parse(&format!("k:{}", &text[9..])).unwrap();
    let sealed = same_id(&one).seal(b"", b"secret").unwrap();
    assert!(matches!(same_id(&two).open(b"", &sealed), Err(Error::Sealed)));
}

#[test]
fn a_new_key_in_front_decrypts_and_rewraps() {
    let (old, new) = (KeyRing::generate().unwrap(), KeyRing::generate().unwrap());
    let sealed = KeyRing::parse(&old).unwrap().seal(b"place", b"secret").unwrap();
    let both = KeyRing::parse(&format!("{new}# the one before\n{old}")).unwrap();
    assert_eq!(both.open(b"place", &sealed).unwrap(), b"secret");
    let anew = both.rewrap(&sealed).unwrap().unwrap();
    assert_eq!(both.rewrap(&anew).unwrap(), None);
    assert_eq!(KeyRing::parse(&new).unwrap().open(b"place", &anew).unwrap(), b"secret");
    assert!(KeyRing::parse(&old).unwrap().open(b"place", &anew).is_err());
}

#[test]
fn bad_rings_are_refused_without_being_repeated() {
    let one = KeyRing::generate().unwrap();
    let secret = &one[9..];
    for text in [
        String::new(),
        "# nothing".to_owned(),
        secret.to_owned(),
        format!("a b:{secret}"),
        format!("{}:{secret}", "x".repeat(33)),
        format!("a:{secret},a:{secret}"),
        "a:c2hvcnQ=".to_owned(),
        format!("a:!{secret}"),
    ] {
        let error = KeyRing::parse(&text).unwrap_err().to_string();
        assert!(!error.contains(secret.trim()), "{error}");
    }
    let ring = KeyRing::parse(&one).unwrap();
    assert!(!format!("{ring:?}").contains(secret.trim()));
}
