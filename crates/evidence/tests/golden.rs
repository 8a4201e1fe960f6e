//! The golden corpus: sealed decisions of earlier versions that every build replays.
//!
//! Deciding again on the same facts must give the same bytes in every version. A change of the
//! decision semantics therefore fails this test.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, fs, path::Path};

use authority_evidence::verify::{Trust, Valid, sealed_in, verify};

fn corpus() -> BTreeMap<String, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files
        .map(|file| (file.file_stem().unwrap().to_string_lossy().into(), fs::read(file).unwrap()))
        .collect()
}

#[test]
fn sealed_decisions_are_decided_the_same_again() {
    let corpus = corpus();
    assert!(corpus.len() >= 50, "{}", corpus.len());
    for (name, file) in &corpus {
        let found = verify(file, &Trust::default());
        assert!(matches!(found, Ok(Valid::IssuerNotPinned(_))), "{name}: {found:?}");
        let sealed = sealed_in(file).unwrap();
        let again = sealed.decide_again().unwrap();
        assert_eq!(again.written.record, sealed.record, "{name}");
    }
}
