//! Tests that proofs are parsed as they were written, and refused if malformed.

use proptest::{collection::vec, prelude::*};

use crate::log::proof::*;

const HASH: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";

fn proof() -> InclusionProof {
    let checkpoint_note = "log.example\n42\nroot\n\n\u{2014} log.example sig\n".to_owned();
    InclusionProof { index: 5, path: vec![[7; 32], [8; 32]], checkpoint_note }
}

/// The proof with one part of its text replaced. The part must be in the text.
fn changed(from: &str, to: &str) -> Result<InclusionProof, Error> {
    let text = proof().write();
    assert!(text.contains(from), "{from}");
    InclusionProof::parse(&text.replacen(from, to, 1))
}

#[test]
fn a_proof_has_the_published_form() {
    let second = "CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg=";
    let note = proof().checkpoint_note;
    let text = format!("c2sp.org/tlog-proof@v1\nindex 5\n{HASH}\n{second}\n\n{note}");
    assert_eq!(proof().write(), text);
}

#[test]
fn refuses_other_texts() {
    for (from, to) in [
        ("c2sp.org", ""),
        ("c2sp.org", "\u{feff}c2sp.org"),
        ("c2sp.org", "\nc2sp.org"),
        ("@v1\n", "@v2\n"),
        ("@v1\n", "@v1 \n"),
        ("@v1\n", "@v1\r\n"),
    ] {
        assert_eq!(changed(from, to), Err(Error::Header), "{from:?} {to:?}");
    }
    for wrong in [
        "",
        "index 5\nindex 5\n",
        "extra AAAA\nindex 5\n",
        "index\n",
        "index \n",
        "index 05\n",
        "index +5\n",
        "index -5\n",
        "index  5\n",
        "index 5 \n",
        "index 5\r\n",
        "index\t5\n",
        "Index 5\n",
        "index 18446744073709551616\n",
    ] {
        let error = if wrong.starts_with("index 5\ni") { Error::Hash(1) } else { Error::Index };
        assert_eq!(changed("index 5\n", wrong), Err(error), "{wrong:?}");
    }
    // Spare bits, missing or extra padding, base64url, spaces, a short text, a long text.
    for wrong in ["Bwd=\n", "Bwc\n", "Bwc==\n", "B_c=\n", "Bwc= \n", "Bwc=\r\n", "Bw==\n", "BwcH\n"]
    {
        assert_eq!(changed("Bwc=\n", wrong), Err(Error::Hash(1)), "{wrong:?}");
    }
    assert_eq!(changed("CAg=\n", "CAh=\n"), Err(Error::Hash(2)));
    assert_eq!(changed("\n\nlog", "\nlog"), Err(Error::Hash(3)));
    assert_eq!(changed("\n\nlog", "\n\r\nlog"), Err(Error::Hash(3)));
}

#[test]
fn refuses_parts_of_a_proof() {
    let text = proof().write();
    for (part, error) in [
        ("", Error::Header),
        ("c2sp.org/tlog-proof@v1", Error::Header),
        ("c2sp.org/tlog-proof@v1\n", Error::Index),
        ("c2sp.org/tlog-proof@v1\nindex 5", Error::Index),
        ("c2sp.org/tlog-proof@v1\nindex 5\n", Error::Unended),
    ] {
        assert!(text.starts_with(part));
        assert_eq!(InclusionProof::parse(part), Err(error), "{part:?}");
    }
    let (own, _) = text.split_once("\n\n").unwrap();
    assert_eq!(InclusionProof::parse(own), Err(Error::Unended));
    assert_eq!(InclusionProof::parse(&format!("{own}\n\n")), Err(Error::NoCheckpoint));
}

#[test]
fn a_path_has_at_most_63_hashes() {
    let most = InclusionProof { path: vec![[7; 32]; MAX_PATH], ..proof() };
    assert_eq!(InclusionProof::parse(&most.write()), Ok(most));
    let more = InclusionProof { path: vec![[7; 32]; MAX_PATH + 1], ..proof() };
    assert_eq!(InclusionProof::parse(&more.write()), Err(Error::TooLong));
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        index: u64,
        path in vec(any::<[u8; 32]>(), 0..=MAX_PATH),
        checkpoint_note in "(?s).{1,80}",
    ) {
        let proof = InclusionProof { index, path, checkpoint_note };
        prop_assert_eq!(InclusionProof::parse(&proof.write()), Ok(proof));
    }

    #[test]
    fn what_is_read_is_what_would_be_written(at in 0..300_usize, byte in 0..128_u8) {
        let mut bytes = proof().write().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(text) = String::from_utf8(bytes)
            && let Ok(read) = InclusionProof::parse(&text)
        {
            prop_assert_eq!(read.write(), text);
        }
    }
}
