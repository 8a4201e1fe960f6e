//! A codec for messages that are already encoded: bytes in, bytes out.

use bytes::{Buf, BufMut, Bytes};
use tonic::{
    Status,
    codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// A codec that neither encodes nor decodes messages.
#[derive(Clone, Copy)]
pub struct Raw {
    /// The length of the message to send, in bytes: the initial capacity of its buffer.
    pub length: usize,
}

/// The size in bytes above which a stream's buffer is sent. This is tonic's own default.
const YIELD: usize = 32 << 10;

/// The length of a frame's header, in bytes.
const FRAME: usize = 5;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(self.length + FRAME, YIELD)
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(1 << 10, YIELD)
    }
}
