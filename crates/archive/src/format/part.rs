//! A part of an archive: an object with up to 16,384 decisions, and its index.

use std::collections::BTreeMap;

use authority_crypto::sha256;
use authority_evidence::archive::Content;
use authority_ids::{DecisionRef, TenantRef};
use bytes::Bytes;

use super::{
    Error,
    frames::{FrameWriter, frame_lines},
    index::{self, About, IndexRow},
    month::Month,
    names,
};

/// The most decisions in a part.
pub const DECISIONS: usize = 16_384;
/// A part is full when it has at least this many compressed bytes.
const BYTES: usize = 32 << 20;

/// A new object that is not written yet.
pub struct Made {
    pub name: String,
    pub bytes: Vec<u8>,
    pub sha256: [u8; 32],
}

impl Made {
    pub fn new(content: Content, part: u32, bytes: Vec<u8>) -> Self {
        let sha256 = sha256(&bytes);
        Self { name: names::object(content, part, &sha256), bytes, sha256 }
    }
}

/// A new part. Its decisions and its index are not written yet.
pub struct Part {
    pub decisions: Made,
    pub index: Made,
    pub rows: Vec<IndexRow>,
}

impl Part {
    /// Returns the ids of the first and the last decision.
    pub fn ends(&self) -> Option<(DecisionRef, DecisionRef)> {
        let (first, last) = (self.rows.first()?, self.rows.last()?);
        Some((first.about.decision_id.clone(), last.about.decision_id.clone()))
    }
}

/// Collects the entries of a part, in the order of their ids.
pub struct PartWriter {
    tenant_id: TenantRef,
    most: usize,
    frames: FrameWriter,
    abouts: Vec<About>,
}

impl PartWriter {
    /// Creates a writer. `most` is the number of decisions that fit into the part.
    pub fn new(tenant_id: TenantRef, most: usize) -> Result<Self, Error> {
        Ok(Self { tenant_id, most, frames: FrameWriter::new()?, abouts: Vec::new() })
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// The line is not the entry of a decision of the tenant.
    pub fn add(&mut self, line: &[u8]) -> Result<(), Error> {
        self.abouts.push(About::of(line, &self.tenant_id)?);
        Ok(self.frames.add(line)?)
    }

    /// Returns how many more decisions fit into the part.
    pub fn room(&self) -> usize {
        if self.frames.bytes() >= BYTES { 0 } else { self.most - self.abouts.len() }
    }

    pub fn last_id(&self) -> Option<&str> {
        self.abouts.last().map(|about| about.decision_id.as_str())
    }

    /// Returns the part with this number; `None` if it has no decisions.
    ///
    /// # Errors
    /// Only a bug causes an error.
    pub fn finish(self, number: u32) -> Result<Option<Part>, Error> {
        if self.abouts.is_empty() {
            return Ok(None);
        }
        let (object, places) = self.frames.finish()?;
        let rows = self.abouts.into_iter().zip(places);
        let rows: Vec<IndexRow> = rows.map(|(about, place)| IndexRow { about, place }).collect();
        let decisions = Made::new(Content::Decisions, number, object);
        let index = index::write(&rows, &decisions.name)?;
        Ok(Some(Part { index: Made::new(Content::Index, number, index), decisions, rows }))
    }
}

/// A part that was read from the archive and is checked next.
pub struct Read<'p> {
    pub tenant_id: &'p TenantRef,
    pub month: Month,
    /// The name of the object with the decisions.
    pub name: &'p str,
    pub decisions: &'p [u8],
    pub index: Bytes,
}

impl Read<'_> {
    /// Compares each row of the index with its entry, calls `each`, and returns the rows.
    ///
    /// # Errors
    /// The index does not match the part, or a decision belongs to another tenant or month. Also
    /// the first error of `each`.
    pub fn check(
        self,
        mut each: impl FnMut(&IndexRow, &[u8]) -> Result<(), Error>,
    ) -> Result<Vec<IndexRow>, Error> {
        let (rows, named) = index::read(self.index)?;
        let differs = |what: &str| Err(Error::Differs(what.to_owned()));
        if named != self.name {
            return differs("its index belongs to another part");
        }
        let mut frames: BTreeMap<u64, Vec<&IndexRow>> = BTreeMap::new();
        for row in &rows {
            frames.entry(row.place.offset).or_default().push(row);
        }
        let (mut end, mut before) = (0, DecisionRef::default());
        let ids = self.month.ids();
        let ids = ids.start.as_str()..ids.end.as_str();
        for (offset, rows) in frames {
            let length = rows[0].place.length;
            let frame = slice(self.decisions, offset, length).filter(|_| offset == end);
            let Some(frame) = frame else {
                return differs("its index names frames that it does not have");
            };
            let found = frame_lines(frame)?;
            if found.len() != rows.len() || sha256(frame) != rows[0].place.sha256 {
                return differs("its index describes other frames");
            }
            for ((number, line), row) in found.iter().enumerate().zip(rows) {
                let id = &row.about.decision_id;
                let in_place = u32::try_from(number) == Ok(row.place.line);
                if !in_place || About::of(line, self.tenant_id)? != row.about {
                    return Err(Error::Differs(format!("`{id}` is not at its place in the index")));
                }
                if *id <= before || !ids.contains(&id.as_str()) {
                    return Err(Error::Differs(format!("`{id}` is out of order")));
                }
                each(row, line)?;
                before.clone_from(id);
            }
            end = offset + length;
        }
        if u64::try_from(self.decisions.len()) != Ok(end) {
            return differs("it has more than its index names");
        }
        Ok(rows)
    }
}

fn slice(object: &[u8], offset: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    object.get(start..start.checked_add(usize::try_from(length).ok()?)?)
}
