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
/// The most lines of an object without an index: history has up to 20,500.
const MOST_LINES: usize = 32 << 10;
/// Bytes that are decompressed at once.
const PIECE: usize = 64 << 10;
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

/// The lines of a frame.
///
/// # Errors
/// It is not zstd, its checksum differs, or it has more than any that is written.
pub fn frame_lines(frame: &[u8]) -> Result<Vec<Vec<u8>>> {
    lines_of(frame, usize::try_from(LINES).unwrap_or(usize::MAX))
}

/// The lines of an object of history.
///
/// # Errors
/// As [`frame_lines`].
pub fn lines(object: &[u8]) -> Result<Vec<Vec<u8>>> {
    lines_of(object, MOST_LINES)
}

/// Some bytes can be a thousand times as many lines: they are counted before a place is made for each.
fn lines_of(object: &[u8], most: usize) -> Result<Vec<Vec<u8>>> {
    let unfit = |why| Error::new(ErrorKind::InvalidData, why);
    let mut read = Decoder::with_buffer(object)?;
    let (mut text, mut piece, mut ends) = (Vec::new(), vec![0; PIECE], 0);
    loop {
        let piece = match read.read(&mut piece)? {
            0 => break,
            count => &piece[..count],
        };
        ends += piece.split(|byte| *byte == b'\n').skip(1).count();
        text.extend_from_slice(piece);
        if ends > most || length(&text) > MOST_READ {
            return Err(unfit("it has more lines or bytes than any that is written"));
        }
    }
    match text.pop() {
        None => Ok(Vec::new()),
        Some(b'\n') => Ok(text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()),
        Some(_) => Err(unfit("its last line has no end")),
    }
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
            let found = frame_lines(frame).unwrap();
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
        assert_eq!(frame_lines(frame(&object, &places[1])).unwrap(), [b"small".to_vec()]);
    }

    #[test]
    fn no_more_is_read_than_is_written() {
        let compressed = |text: &[u8]| zstd::encode_all(text, LEVEL).unwrap();
        let breaks = |count: usize| compressed(&vec![b'\n'; count]);
        assert_eq!(frame_lines(&breaks(256)).unwrap().len(), 256);
        assert!(frame_lines(&breaks(257)).is_err());
        assert_eq!(lines(&breaks(MOST_LINES)).unwrap().len(), MOST_LINES);
        assert!(lines(&breaks(MOST_LINES + 1)).is_err());
        let large = breaks(64 << 20);
        assert!(large.len() < 8192 && lines(&large).is_err());
    }

    #[test]
    fn what_was_damaged_is_an_error() {
        let mut writer = FrameWriter::new().unwrap();
        (0..100).for_each(|number| writer.add(&line(number)).unwrap());
        let (object, _) = writer.finish().unwrap();
        for at in 0..object.len() {
            let mut damaged = object.clone();
            damaged[at] ^= 1;
            // Some bits mean nothing; the first bytes say whether there is a checksum.
            let is_same = |found| found == lines(&object).unwrap();
            assert!(at < 12 || lines(&damaged).map_or(true, is_same), "byte {at}");
        }
        assert!(lines(&object[..object.len() - 1]).is_err());
        assert!(lines(b"no frame").is_err());
        assert_eq!(lines(b"").unwrap_or_default(), Vec::<Vec<u8>>::new());
    }
}
