//! Tests that notes and keys are parsed as they were written, and refused if malformed.

use proptest::prelude::*;

use crate::log::note::*;

const ORIGIN: &str = "authority.example/log/acme";

fn checkpoint() -> Checkpoint {
    Checkpoint { origin: ORIGIN.to_owned(), size: 42, root: [7; 32] }
}

fn note() -> String {
    signed(&checkpoint().body(), ORIGIN, [1, 2, 3, 4], &[9; 64])
}

/// The note with one part of its text replaced. The part must be in the text.
fn changed(from: &str, to: &str) -> Result<SignedCheckpoint, Error> {
    let note = note();
    assert!(note.contains(from), "{from}");
    SignedCheckpoint::parse(&note.replacen(from, to, 1))
}

/// Returns a signature line of a witness. Its name and its length differ from the log's line.
fn witness(name: &str) -> String {
    format!("\u{2014} {name} AAAAAQI=\n")
}

#[test]
fn a_note_has_the_published_form() {
    let (root, own) = ("BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=", "CQkJ".repeat(20));
    assert_eq!(note(), format!("{ORIGIN}\n42\n{root}\n\n\u{2014} {ORIGIN} AQIDBAkJ{own}CQk=\n"));
}

/// The example of C2SP's `tlog-checkpoint`.
#[test]
fn reads_a_note_from_elsewhere() {
    let note = "example.com/behind-the-sofa\n20852163\n\
                CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\
                \u{2014} example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeO\
                oRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n";
    let read = SignedCheckpoint::parse(note).unwrap();
    assert_eq!(read.checkpoint.size, 20_852_163);
    assert_eq!(read.key_id, [0x03, 0x3d, 0xe0, 0xae]);
    assert_eq!(signed(&read.body, &read.checkpoint.origin, read.key_id, &read.signature), note);
}

#[test]
fn witnesses_may_sign_before_and_after() {
    let plain = SignedCheckpoint::parse(&note()).unwrap();
    let after = note() + &witness("w.example/1") + &witness("w.example/2");
    assert_eq!(SignedCheckpoint::parse(&after).as_ref(), Ok(&plain));
    let before = note().replacen("\n\n", &format!("\n\n{}", witness("w.example")), 1);
    assert_eq!(SignedCheckpoint::parse(&before).as_ref(), Ok(&plain));
    let most = note() + &witness("w.example").repeat(MAX_SIGNATURES - 1);
    assert_eq!(SignedCheckpoint::parse(&most), Ok(plain));
    let more = most + &witness("w.example");
    assert_eq!(SignedCheckpoint::parse(&more), Err(Error::TooManySignatures));
}

#[test]
fn refuses_other_checkpoints() {
    let origin = "log/acme\n";
    for wrong in ["log/ac me\n", "log/ac+me\n", "log/acme\r\n", "log/ac\u{a0}me\n", "log/\u{7f}\n"]
    {
        assert_eq!(changed(origin, wrong), Err(Error::Origin), "{wrong:?}");
    }
    assert_eq!(changed(&format!("{ORIGIN}\n42"), "\n42"), Err(Error::Origin));
    for wrong in ["", "042", "+42", "-42", " 42", "42 ", "0x2a", "4_2", "\u{664}2", "42\r"] {
        assert_eq!(
            changed("\n42\n", &format!("\n{wrong}\n")).err(),
            Some(match wrong {
                // With an empty size, the line is empty, and the signatures would start after it.
                "" => Error::Lines,
                _ => Error::Size,
            }),
            "{wrong:?}"
        );
    }
    assert_eq!(changed("\n42\n", "\n18446744073709551616\n"), Err(Error::Size));
    // Spare bits, missing or extra padding, base64url, spaces, a short text, a long text.
    for wrong in ["Bwd=\n", "Bwc\n", "Bwc==\n", "B_c=\n", "Bwc= \n", "Bwc=\r\n", "Bw==\n", "BwcH\n"]
    {
        assert_eq!(changed("Bwc=\n", wrong), Err(Error::Root), "{wrong:?}");
    }
    assert_eq!(changed("42\n", ""), Err(Error::Lines));
    assert_eq!(changed("\n\n", "\nmore\n\n"), Err(Error::Lines));
}

#[test]
fn refuses_other_signatures() {
    assert_eq!(changed("\n\n", "\n"), Err(Error::NoSignatures));
    assert_eq!(SignedCheckpoint::parse(""), Err(Error::NoSignatures));
    assert_eq!(SignedCheckpoint::parse(&checkpoint().body()), Err(Error::NoSignatures));
    assert_eq!(SignedCheckpoint::parse(note().trim_end()), Err(Error::Unended));
    assert_eq!(SignedCheckpoint::parse(&(checkpoint().body() + "\n")), Err(Error::Unended));
    for (from, to) in [
        ("\n\n", "\n\n\n"),
        ("\u{2014} ", "- "),
        ("\u{2014} ", "\u{2014}"),
        ("\u{2014} ", "\u{2014}  "),
        ("\u{2014} ", " \u{2014} "),
        (" AQID", "  AQID"),
        (" AQID", "+AQID"),
        ("CQk=\n", "CQk=\r\n"),
        ("CQk=\n", "CQk= \n"),
        ("CQk=\n", "CQk\n"),
        ("CQk=\n", "CQl=\n"),
        ("CQk=\n", "CQk=\n\n"),
        ("CQk=\n", "CQk=\nmore\n"),
    ] {
        assert_eq!(changed(from, to), Err(Error::SignatureLine), "{from:?} {to:?}");
    }
    for wrong in ["\u{2014} w.example AAAAAQ==\n", "\u{2014} w+x AAAAAQI=\n", "\u{2014} w\n"] {
        let wrong = SignedCheckpoint::parse(&(note() + wrong));
        assert_eq!(wrong, Err(Error::SignatureLine));
    }
    assert_eq!(changed("CQk=\n", "CQkJ\n"), Err(Error::Signature));
    assert_eq!(changed("CQk=\n", "\n"), Err(Error::Signature));
    let other = Error::NotSigned(ORIGIN.to_owned());
    assert_eq!(changed("acme AQID", "acme2 AQID"), Err(other));
    let twice = Error::SignedTwice(ORIGIN.to_owned());
    assert_eq!(SignedCheckpoint::parse(&(note() + &witness(ORIGIN))), Err(twice));
}

/// The key of Go's checksum database, as Go's tools contain it.
#[test]
fn reads_a_key_from_elsewhere() {
    let vkey = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8";
    let key = LogKey::parse(vkey).unwrap();
    assert_eq!(key.origin, "sum.golang.org");
    assert_eq!(key.id(), [0x03, 0x3d, 0xe0, 0xae]);
    assert_eq!(key.vkey(), vkey);
}

#[test]
fn refuses_other_keys() {
    let key = LogKey { origin: ORIGIN.to_owned(), public_key: [7; 32] };
    let (vkey, id) = (key.vkey(), hex::encode(key.id()));
    assert!(vkey.ends_with("+AQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH"));
    for (from, to, error) in [
        (ORIGIN, "", Error::Origin),
        (ORIGIN, "a b", Error::Origin),
        (ORIGIN, "other.example", Error::KeyId),
        ("+AQcH", "+AQcI", Error::KeyId),
        ("+AQcH", "+AgcH", Error::Key),
        ("+AQcH", "AQcH", Error::Key),
        ("+AQcH", "+ AQcH", Error::Key),
        ("+AQcH", "+", Error::Key),
        ("+AQcH", "+AQcHBwcH", Error::Key),
        (&id, "", Error::Key),
        (&id, "00000000", Error::KeyId),
        (&id, &id[..6], Error::Key),
        (&id, &id.to_uppercase(), Error::Key),
        (&id, &format!("{id}0"), Error::Key),
    ] {
        assert!(vkey.contains(from), "{from}");
        assert_eq!(LogKey::parse(&vkey.replacen(from, to, 1)), Err(error), "{from:?} {to:?}");
    }
    assert_eq!(LogKey::parse(&format!("{vkey}\n")), Err(Error::Key));
    assert_eq!(LogKey::parse(""), Err(Error::Key));
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        origin in "[a-z0-9./é-]{1,40}",
        size: u64,
        root: [u8; 32],
        id: [u8; 4],
        halves: [[u8; 32]; 2],
    ) {
        let checkpoint = Checkpoint { origin: origin.clone(), size, root };
        let body = checkpoint.body();
        let signature = halves.concat().try_into().unwrap();
        let read = SignedCheckpoint::parse(&signed(&body, &origin, id, &signature));
        prop_assert_eq!(read, Ok(SignedCheckpoint { checkpoint, body, key_id: id, signature }));
        let key = LogKey { origin, public_key: root };
        prop_assert_eq!(LogKey::parse(&key.vkey()), Ok(key));
    }

    #[test]
    fn what_is_read_is_what_would_be_written(at in 0..300_usize, byte in 0..128_u8) {
        let mut bytes = note().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(text) = String::from_utf8(bytes)
            && let Ok(read) = SignedCheckpoint::parse(&text)
        {
            let origin = &read.checkpoint.origin;
            prop_assert_eq!(signed(&read.body, origin, read.key_id, &read.signature), text);
        }
    }
}
