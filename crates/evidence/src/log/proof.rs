//! Inclusion proofs as texts, which can be verified with only the log's key.
//!
//! The format is C2SP's `tlog-proof@v1`, without the optional line of extra data, which would not
//! be authenticated.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    note::{base64_array, decimal},
    tree::Hash,
};

/// The first line of a proof.
const HEADER: &str = "c2sp.org/tlog-proof@v1";

/// The most hashes of a path: a tree is never higher, see [`MAX_SIZE`](super::tree::MAX_SIZE).
pub const MAX_PATH: usize = 63;

/// Errors of a proof's text.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("the proof's first line is not `{HEADER}`")]
    Header,
    #[error("the proof's second line is not `index` and a decimal number")]
    Index,
    #[error("line {0} of the proof's path is not the canonical base64 of 32 bytes")]
    Hash(usize),
    #[error("the proof's path has more than {MAX_PATH} hashes")]
    TooLong,
    #[error("the proof has no empty line after its path")]
    Unended,
    #[error("the proof has no checkpoint")]
    NoCheckpoint,
}

/// The proof that a leaf is in a log, with its checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InclusionProof {
    /// The leaf's number, from 0.
    pub index: u64,
    /// The hashes from the leaf's sibling up to the root's child (RFC 6962, section 2.1.1).
    pub path: Vec<Hash>,
    /// The signed note, exactly as the log returned it.
    ///
    /// Parse it with [`SignedCheckpoint::parse`](super::note::SignedCheckpoint::parse).
    pub checkpoint_note: String,
}

impl InclusionProof {
    /// Returns the text form.
    pub fn write(&self) -> String {
        let mut text = format!("{HEADER}\nindex {}\n", self.index);
        for hash in &self.path {
            text.push_str(&STANDARD.encode(hash));
            text.push('\n');
        }
        text.push('\n');
        text.push_str(&self.checkpoint_note);
        text
    }

    /// Parses the output of [`InclusionProof::write`].
    ///
    /// Everything after the first empty line is the checkpoint, which is not parsed here.
    /// [`verify_inclusion`](super::verify::verify_inclusion) checks the length of the path.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let rest = text.strip_prefix(HEADER).and_then(|rest| rest.strip_prefix('\n'));
        let (index, mut rest) = rest.ok_or(Error::Header)?.split_once('\n').ok_or(Error::Index)?;
        let index = index.strip_prefix("index ").and_then(decimal).ok_or(Error::Index)?;
        let mut path = Vec::new();
        loop {
            let (line, after) = rest.split_once('\n').ok_or(Error::Unended)?;
            rest = after;
            if line.is_empty() {
                break;
            }
            if path.len() == MAX_PATH {
                return Err(Error::TooLong);
            }
            path.push(base64_array(line).ok_or(Error::Hash(path.len() + 1))?);
        }
        if rest.is_empty() {
            return Err(Error::NoCheckpoint);
        }
        Ok(Self { index, path, checkpoint_note: rest.to_owned() })
    }
}
