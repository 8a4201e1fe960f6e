//! Lines in frames: an object is a series of zstd frames, each of a few hundred lines.
//!
//! Every frame can be read alone, if its offset and length are known. The whole object is also one
//! zstd file, which `zstd -dc` reads.

use std::io::{Error, ErrorKind, Read, Result};

use authority_crypto::sha256;
use zstd::{bulk::Compressor, stream::read::Decoder, zstd_safe::CParameter};

/// The most lines in a frame.
const LINES: u32 = 256;
/// A frame is closed when its lines have at least this many bytes.
const BYTES: usize = 1 << 20;
/// The most lines of an object without an index. The service writes up to 20,500 in an object of
/// history.
const MOST_LINES: usize = 32 << 10;
/// The size of the buffer for decompression, in bytes.
const PIECE: usize = 64 << 10;
/// The most uncompressed bytes that are read from an object. The last line can make a frame larger
/// than [`BYTES`].
const MOST_READ: u64 = 256 << 20;
/// Level 3 is zstd's default. Higher levels take several times as long to save a few per cent.
const LEVEL: i32 = 3;

/// The place of a line in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePlace {
    /// The frame's offset, in bytes of the object.
    pub offset: u64,
    pub length: u64,
    /// The line's number in the frame, from 0.
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
    places: Vec<LinePlace>,
    read: usize,
}

impl FrameWriter {
    pub fn new() -> Result<Self> {
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        let (object, open, places) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { compressor, object, open, lines: 0, places, read: 0 })
    }

    /// Returns the compressed size of the closed frames, in bytes.
    pub fn bytes(&self) -> usize {
        self.object.len()
    }

    /// Returns the uncompressed size of all added lines, in bytes.
    pub fn read_bytes(&self) -> usize {
        self.read
    }

    pub fn lines(&self) -> usize {
        self.places.len() + usize::try_from(self.lines).unwrap_or_default()
    }

    /// Adds a line, which must not contain a line break.
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
        self.places.extend(lines.map(|line| LinePlace { offset, length, line, sha256 }));
        self.object.extend_from_slice(&frame);
        self.open.clear();
        self.lines = 0;
        Ok(())
    }

    /// Returns the object and the place of each line.
    pub fn finish(mut self) -> Result<(Vec<u8>, Vec<LinePlace>)> {
        self.close()?;
        Ok((self.object, self.places))
    }
}

/// Returns the lines of a frame.
///
/// # Errors
/// The bytes are not zstd, the checksum differs, or there are more lines or bytes than the service
/// writes.
pub fn frame_lines(frame: &[u8]) -> Result<Vec<Vec<u8>>> {
    lines_of(frame, usize::try_from(LINES).unwrap_or(usize::MAX))
}

/// Returns the lines of an object of history.
///
/// # Errors
/// The same as for [`frame_lines`].
pub fn lines(object: &[u8]) -> Result<Vec<Vec<u8>>> {
    lines_of(object, MOST_LINES)
}

/// A small object can decompress to very many lines. The lines are therefore counted before memory
/// is allocated for each of them.
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
            return Err(unfit("it has more lines or bytes than the service writes"));
        }
    }
    match text.pop() {
        None => Ok(Vec::new()),
        Some(b'\n') => Ok(text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()),
        Some(_) => Err(unfit("its last line is incomplete")),
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

    fn frame<'o>(object: &'o [u8], place: &LinePlace) -> &'o [u8] {
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
        // Decompresses the whole object, as `zstd -dc` does.
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
            // Some bits have no meaning. The first 12 bytes contain the flag that enables the
            // checksum.
            let is_same = |found| found == lines(&object).unwrap();
            assert!(at < 12 || lines(&damaged).map_or(true, is_same), "byte {at}");
        }
        assert!(lines(&object[..object.len() - 1]).is_err());
        assert!(lines(b"no frame").is_err());
        assert_eq!(lines(b"").unwrap_or_default(), Vec::<Vec<u8>>::new());
    }
}
