//! Checkpoints: a log's size and root as a signed note, and the text form of its key.
//!
//! The formats are C2SP's `signed-note` and `tlog-checkpoint`, with Ed25519 (signature type 1).
//! Only the simplest form is accepted: a checkpoint without extension lines, signed once by its log
//! under the log's origin. This module only formats and parses; callers create and verify the
//! signature.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::tree::Hash;
use crate::is_hex;
use authority_crypto::sha256;

/// The most signatures of a note, from the log and its witnesses.
///
/// C2SP requires a limit of at least 16.
pub const MAX_SIGNATURES: usize = 32;

/// C2SP's signature type of Ed25519.
const ED25519: u8 = 1;

/// The start of a signature's line: an em dash and a space.
const DASH: &str = "\u{2014} ";

/// Errors of a note, a checkpoint or a key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("a log's origin is empty, or has a space, a plus or a control character")]
    Origin,
    #[error("the note has no empty line between its text and its signatures")]
    NoSignatures,
    #[error("the note does not end with its last signature's newline")]
    Unended,
    #[error("the checkpoint is not the three lines origin, size and root")]
    Lines,
    #[error("the checkpoint's size is not a decimal number, or too large")]
    Size,
    #[error("the checkpoint's root is not the canonical base64 of 32 bytes")]
    Root,
    #[error("a line of the signatures is not a dash, a name and a signature in canonical base64")]
    SignatureLine,
    #[error("the note has more than {MAX_SIGNATURES} signatures")]
    TooManySignatures,
    #[error("the log itself, `{0}`, did not sign the note")]
    NotSigned(String),
    #[error("the log itself, `{0}`, signed the note twice")]
    SignedTwice(String),
    #[error("the log's own signature is not a key id and the 64 bytes of Ed25519")]
    Signature,
    #[error("the key is not an origin, a key id of 8 lower-case hex and an Ed25519 key, with `+`")]
    Key,
    #[error("the key's id does not match its origin and its bytes")]
    KeyId,
}

/// The statement that a log signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log: a URL without a scheme. It is also the name of the log's key.
    pub origin: String,
    /// The number of leaves in the tree.
    pub size: u64,
    pub root: Hash,
}

impl Checkpoint {
    /// Returns the signed text (C2SP `tlog-checkpoint`, "Note text"), with its last newline.
    ///
    /// If [`check_origin`] refuses the origin, [`Checkpoint::parse`] refuses the text.
    pub fn body(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.root))
    }

    /// Parses the output of [`Checkpoint::body`] and no other text.
    pub fn parse(body: &str) -> Result<Self, Error> {
        let body = body.strip_suffix('\n').ok_or(Error::Lines)?;
        let mut lines = body.split('\n');
        let (Some(origin), Some(size), Some(root), None) =
            (lines.next(), lines.next(), lines.next(), lines.next())
        else {
            return Err(Error::Lines);
        };
        check_origin(origin)?;
        let size = decimal(size).ok_or(Error::Size)?;
        let root = base64_array(root).ok_or(Error::Root)?;
        Ok(Self { origin: origin.to_owned(), size, root })
    }
}

/// A checkpoint with its log's signature over `body`. The signature is not verified yet.
///
/// The signing key has the name `checkpoint.origin` and the id `key_id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCheckpoint {
    pub checkpoint: Checkpoint,
    /// The signed text.
    pub body: String,
    pub key_id: [u8; 4],
    /// Ed25519 (RFC 8032).
    pub signature: [u8; 64],
}

impl SignedCheckpoint {
    /// Parses a note.
    ///
    /// A signature with another name than the origin is by a witness. It may be anywhere among the
    /// signature lines, must be well formed, and is skipped.
    pub fn parse(note: &str) -> Result<Self, Error> {
        let (text, signatures) = note.split_once("\n\n").ok_or(Error::NoSignatures)?;
        let body = format!("{text}\n");
        let checkpoint = Checkpoint::parse(&body)?;
        let mut own = None;
        let signatures = signatures.strip_suffix('\n').ok_or(Error::Unended)?;
        for (count, line) in signatures.split('\n').enumerate() {
            if count >= MAX_SIGNATURES {
                return Err(Error::TooManySignatures);
            }
            let (name, bytes) = signature_line(line).ok_or(Error::SignatureLine)?;
            if name == checkpoint.origin && own.replace(bytes).is_some() {
                return Err(Error::SignedTwice(checkpoint.origin));
            }
        }
        let Some(own) = own else { return Err(Error::NotSigned(checkpoint.origin)) };
        let (key_id, signature) = own.split_first_chunk().ok_or(Error::Signature)?;
        let signature = signature.try_into().map_err(|_| Error::Signature)?;
        Ok(Self { checkpoint, body, key_id: *key_id, signature })
    }
}

/// Returns the note of a signed text (C2SP `signed-note`, "Format"). `body` ends with a newline.
pub fn signed(body: &str, origin: &str, key_id: [u8; 4], signature: &[u8; 64]) -> String {
    let bytes = STANDARD.encode([&key_id[..], signature].concat());
    format!("{body}\n{DASH}{origin} {bytes}\n")
}

/// Returns the id of a log's key (C2SP `signed-note`, "Ed25519 signatures").
///
/// The id helps to find the key. It does not prove that the key is the right one.
pub fn key_id(origin: &str, public_key: &[u8; 32]) -> [u8; 4] {
    let [a, b, c, d, ..] =
        sha256(&[origin.as_bytes(), b"\n", &[ED25519], public_key.as_slice()].concat());
    [a, b, c, d]
}

/// A log's public key, in the form that verifiers of its checkpoints use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogKey {
    pub origin: String,
    /// Ed25519 (RFC 8032).
    pub public_key: [u8; 32],
}

impl LogKey {
    /// Returns the [`key_id`] of this key.
    pub fn id(&self) -> [u8; 4] {
        key_id(&self.origin, &self.public_key)
    }

    /// Returns the text form for note tools, called vkey.
    ///
    /// It consists of the origin, the id in hex, and the type and key in base64, joined by `+`.
    pub fn vkey(&self) -> String {
        let bytes = STANDARD.encode([&[ED25519], &self.public_key[..]].concat());
        format!("{}+{}+{bytes}", self.origin, hex::encode(self.id()))
    }

    /// Parses the output of [`LogKey::vkey`] and no other text.
    pub fn parse(vkey: &str) -> Result<Self, Error> {
        // Base64 may contain `+`; an origin may not.
        let mut parts = vkey.splitn(3, '+');
        let (Some(origin), Some(id), Some(bytes)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(Error::Key);
        };
        check_origin(origin)?;
        let Some([ED25519, public_key @ ..]) = base64_array::<33>(bytes) else {
            return Err(Error::Key);
        };
        if !is_hex(id, 8) {
            return Err(Error::Key);
        }
        let key = Self { origin: origin.to_owned(), public_key };
        if hex::encode(key.id()) != id {
            return Err(Error::KeyId);
        }
        Ok(key)
    }
}

/// Checks a log's origin.
///
/// The origin is also the name of the log's key, which must not contain spaces or a plus (C2SP
/// `signed-note`, "Format").
pub fn check_origin(origin: &str) -> Result<(), Error> {
    if is_name(origin) { Ok(()) } else { Err(Error::Origin) }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '+')
}

/// Returns the name and the bytes of a signature line. The bytes are a key id and at least one byte
/// of a signature of any type.
fn signature_line(line: &str) -> Option<(&str, Vec<u8>)> {
    let (name, bytes) = line.strip_prefix(DASH)?.split_once(' ')?;
    let bytes = STANDARD.decode(bytes).ok()?;
    (is_name(name) && bytes.len() > 4).then_some((name, bytes))
}

/// Decodes exactly `N` bytes of base64 (RFC 4648, section 4).
///
/// `STANDARD` accepts only the canonical text: it refuses missing padding, nonzero trailing bits,
/// and spaces.
pub(super) fn base64_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

/// Parses a number in ASCII digits, without sign or leading zeros.
pub(super) fn decimal(text: &str) -> Option<u64> {
    let canonical =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}
