//! Lines in frames: an object is a series of zstd frames, each of some hundred lines.
//!
//! Every frame can be read alone, by its place in the object; together they are one zstd file, which `zstd -dc`
//! reads.

use std::io::{Error, ErrorKind, Read, Result};

use authority_crypto::sha256;
use zstd::{bulk::Compressor, stream::read::Decoder, zstd_safe::CParameter};

/// The most lines in a frame.
const LINES: u32 = 256;
/// A frame ends when its lines have so many bytes.
const BYTES: usize = 1 << 20;
/// The most bytes of lines that a frame is read to: a frame is some larger than [`BYTES`] by its last line.
const MOST_READ: u64 = 256 << 20;
/// Level 3 is zstd's own default: higher ones take several times as long for some per cent.
const LEVEL: i32 = 3;

/// Where a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The frame's, in bytes of the object.
    pub offset: u64,
    pub length: u64,
    /// Of the frame's lines, from 0.
    pub line: u32,
    /// SHA-256 of the frame.
    pub sha256: [u8; 32],
}

/// Writes lines into frames.
pub struct FrameWriter {
    compressor: Compressor<'static>,
    object: Vec<u8>,
    open: Vec<u8>,
    lines: u32,
    places: Vec<Place>,
    read: usize,
}

impl FrameWriter {
    pub fn new() -> Result<Self> {
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        let (object, open, places) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { compressor, object, open, lines: 0, places, read: 0 })
    }

    /// The bytes of the object so far, without the open frame.
    pub fn bytes(&self) -> usize {
        self.object.len()
    }

    /// The bytes that the object has when it is read, so far.
    pub fn read_bytes(&self) -> usize {
        self.read
    }

    pub fn lines(&self) -> usize {
        self.places.len() + usize::try_from(self.lines).unwrap_or_default()
    }

    /// Adds a line, which has no line break.
    pub fn add(&mut self, line: &[u8]) -> Result<()> {
        self.open.extend_from_slice(line);
        self.open.push(b'\n');
        self.read += line.len() + 1;
        self.lines += 1;
        if self.lines == LINES || self.open.len() >= BYTES { self.close() } else { Ok(()) }
    }

    fn close(&mut self) -> Result<()> {
        if self.lines == 0 {
            return Ok(());
        }
        let frame = self.compressor.compress(&self.open)?;
        let (offset, length) = (length(&self.object), length(&frame));
        let sha256 = sha256(&frame);
        let lines = 0..self.lines;
        self.places.extend(lines.map(|line| Place { offset, length, line, sha256 }));
        self.object.extend_from_slice(&frame);
        self.open.clear();
        self.lines = 0;
        Ok(())
    }

    /// The object, and where each line is.
    pub fn finish(mut self) -> Result<(Vec<u8>, Vec<Place>)> {
        self.close()?;
        Ok((self.object, self.places))
    }
}

/// The lines of a frame, or of a whole object.
///
/// # Errors
/// It is not zstd, its checksum differs, or it is larger than any that is written.
pub fn lines(frame: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut text = Vec::new();
    Decoder::with_buffer(frame)?.take(MOST_READ + 1).read_to_end(&mut text)?;
    if length(&text) > MOST_READ {
        return Err(Error::new(ErrorKind::InvalidData, "a frame is too large"));
    }
    let ends = text.pop();
    if ends.is_some_and(|last| last != b'\n') {
        return Err(Error::new(ErrorKind::InvalidData, "its last line has no end"));
    }
    if ends.is_none() {
        return Ok(Vec::new());
    }
    Ok(text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect())
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: usize) -> Vec<u8> {
        format!("{{\"number\":{number},\"text\":\"{}\"}}", "a".repeat(number % 90)).into_bytes()
    }

    fn frame<'o>(object: &'o [u8], place: &Place) -> &'o [u8] {
        let start = usize::try_from(place.offset).unwrap();
        &object[start..start + usize::try_from(place.length).unwrap()]
    }

    #[test]
    fn each_line_is_found_by_its_place_and_all_of_them_are_one_file() {
        let mut writer = FrameWriter::new().unwrap();
        for number in 0..1000 {
            writer.add(&line(number)).unwrap();
            assert_eq!(writer.lines(), number + 1);
        }
        let (object, places) = writer.finish().unwrap();
        assert_eq!(places.len(), 1000);
        for (number, place) in places.iter().enumerate() {
            let frame = frame(&object, place);
            assert_eq!(sha256(frame), place.sha256);
            let found = lines(frame).unwrap();
            assert!(found.len() <= 256);
            assert_eq!(found[usize::try_from(place.line).unwrap()], line(number));
        }
        // As `zstd -dc` does.
        let mut whole = Vec::new();
        Decoder::with_buffer(&*object).unwrap().read_to_end(&mut whole).unwrap();
        let expected: Vec<u8> =
            (0..1000).flat_map(|number| [line(number), vec![b'\n']].concat()).collect();
        assert_eq!(whole, expected);
    }

    #[test]
    fn large_lines_have_frames_of_their_own() {
        let mut writer = FrameWriter::new().unwrap();
        let large = vec![b'x'; BYTES];
        writer.add(&large).unwrap();
        writer.add(b"small").unwrap();
        let (object, places) = writer.finish().unwrap();
        assert_ne!(places[0].offset, places[1].offset);
        assert_eq!(lines(frame(&object, &places[1])).unwrap(), [b"small".to_vec()]);
    }

    #[test]
    fn what_was_damaged_is_an_error() {
        let mut writer = FrameWriter::new().unwrap();
        (0..100).for_each(|number| writer.add(&line(number)).unwrap());
        let (object, _) = writer.finish().unwrap();
        for at in 0..object.len() {
            let mut damaged = object.clone();
            damaged[at] ^= 1;
            let same = lines(&damaged).is_ok_and(|found| found == lines(&object).unwrap());
            assert!(!same || lines(&damaged).is_err() || at < 12, "byte {at}");
        }
        assert!(lines(&object[..object.len() - 1]).is_err());
        assert!(lines(b"no frame").is_err());
        assert_eq!(lines(b"").unwrap_or_default(), Vec::<Vec<u8>>::new());
    }
}
