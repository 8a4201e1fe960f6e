//! The file that contains the key ring.

use std::{fs, os::unix::fs::PermissionsExt};

use authority_crypto::KeyRing;
use authority_keys::key_ring;

#[test]
fn a_ring_file_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys/ring");
    let made = key_ring::load_or_create(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    let sealed = made.seal(b"", b"secret").unwrap();
    assert_eq!(key_ring::load_or_create(&path).unwrap().open(b"", &sealed).unwrap(), b"secret");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let error = key_ring::load(&path).unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
    assert!(key_ring::load(&folder.path().join("none")).is_err());
    assert!(key_ring::load(folder.path()).is_err());
}

#[test]
fn many_that_start_at_once_end_with_one_ring() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring");
    let rings: Vec<KeyRing> = std::thread::scope(|scope| {
        let starts: Vec<_> =
            (0..8).map(|_| scope.spawn(|| key_ring::load_or_create(&path).unwrap())).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let sealed = rings[0].seal(b"", b"secret").unwrap();
    assert!(rings.iter().all(|ring| ring.open(b"", &sealed).is_ok()));
}
