//! A minimal HTTP/2 connection with many concurrent gRPC calls (RFC 9113). After the first request,
//! a header block consists of a few indexes (RFC 7541). The headers of responses are not decoded: a
//! failed unary call has no message and can be distinguished by that.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "frames and streams in flight are far below the range of their numbers"
)]

use std::{collections::VecDeque, sync::Arc, time::Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::sleep_until,
};

use crate::{
    Fault,
    call::Call,
    drive::{Due, Tally, Window, Work},
};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;

const HEAD: usize = 9;
/// The largest DATA frame that every server accepts.
const LARGEST_FRAME: usize = 16_384;
/// The flow-control window that the server gets. It is extended when half of it is used.
const RECEIVE_WINDOW: u32 = 1 << 30;
/// The flow-control window that the server grants at first.
const SEND_WINDOW: i64 = 65_535;

/// Makes the calls in turn until the window is over, then waits for the calls in progress. The
/// calls differ in their bodies only.
pub(crate) async fn run(calls: &[Arc<Call>], streams: usize, work: Work) -> Result<Tally, Fault> {
    let call = calls.first().ok_or("there is no call")?;
    let mut socket = TcpStream::connect(call.address).await?;
    socket.set_nodelay(true)?;
    let (mut reader, mut writer) = socket.split();
    let mut peer = Peer::new(call, calls, streams, work.window)?;
    let mut received = Vec::with_capacity(256 * 1024);
    let patience = sleep_until(work.window.patience().into());
    tokio::pin!(patience);
    let mut dry = false;
    loop {
        let now = Instant::now();
        let over = dry || (work.due.is_none() && work.window.over(now));
        if over && peer.waiting == 0 {
            return Ok(peer.tally);
        }
        if work.due.is_none() && !over {
            while peer.may_begin() {
                peer.begin(now);
            }
        }
        tokio::select! {
            biased;
            written = writer.write(&peer.out), if !peer.out.is_empty() => {
                peer.out.drain(..written?);
            }
            due = next(work.due.as_ref()), if !dry && work.due.is_some() && peer.may_begin() => {
                match due {
                    Some(due) => peer.begin(due),
                    None => dry = true,
                }
            }
            read = reader.read_buf(&mut received) => {
                if read? == 0 {
                    return Err("the server closed a connection".into());
                }
                let taken = peer.take(&received)?;
                received.drain(..taken);
            }
            () = &mut patience => {
                peer.tally.failed += peer.waiting as u64;
                return Ok(peer.tally);
            }
        }
    }
}

async fn next(due: Option<&Due>) -> Option<Instant> {
    due?.lock().await.recv().await
}

/// A call in progress.
struct Stream {
    begun: Instant,
    /// The received part of a message in several frames.
    message: Vec<u8>,
    allowed: bool,
}

struct Peer<'call> {
    call: &'call Call,
    window: Window,
    /// The header block of the first request, which adds entries to the dynamic table, and the
    /// block of later requests, which uses the indexes of these entries.
    headers: [Vec<u8>; 2],
    /// The messages of the calls; the next call has message `next`.
    messages: Vec<Vec<u8>>,
    next: usize,
    /// The streams from `oldest` on; `None` after the response.
    streams: VecDeque<Option<Stream>>,
    oldest: u32,
    waiting: usize,
    most: usize,
    /// Bytes of DATA that may be sent.
    credit: i64,
    /// Bytes of DATA received and not yet acknowledged.
    received: u32,
    out: Vec<u8>,
    tally: Tally,
}

impl<'call> Peer<'call> {
    fn new(
        call: &'call Call,
        calls: &[Arc<Call>],
        most: usize,
        window: Window,
    ) -> Result<Self, Fault> {
        let messages = calls.iter().map(|call| message(&call.body)).collect::<Result<_, _>>()?;
        let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        frame(&mut out, SETTINGS, 0, 0, 6);
        out.extend(INITIAL_WINDOW_SIZE.to_be_bytes());
        out.extend(RECEIVE_WINDOW.to_be_bytes());
        frame(&mut out, WINDOW_UPDATE, 0, 0, 4);
        out.extend(RECEIVE_WINDOW.to_be_bytes());
        Ok(Self {
            call,
            window,
            headers: header_blocks(call),
            messages,
            next: 0,
            streams: VecDeque::new(),
            oldest: 1,
            waiting: 0,
            most,
            credit: SEND_WINDOW,
            received: 0,
            out,
            tally: Tally::new()?,
        })
    }

    fn may_begin(&self) -> bool {
        self.waiting < self.most && self.credit >= self.messages[self.next].len() as i64
    }

    fn begin(&mut self, begun: Instant) {
        let stream = self.oldest + 2 * self.streams.len() as u32;
        let headers = &self.headers[usize::from(stream > 1)];
        frame(&mut self.out, HEADERS, END_HEADERS, stream, headers.len());
        self.out.extend(headers);
        let mut rest = self.messages[self.next].as_slice();
        while !rest.is_empty() {
            let (part, left) = rest.split_at(rest.len().min(LARGEST_FRAME));
            let flags = if left.is_empty() { END_STREAM } else { 0 };
            frame(&mut self.out, DATA, flags, stream, part.len());
            self.out.extend(part);
            rest = left;
        }
        self.credit -= self.messages[self.next].len() as i64;
        self.next = (self.next + 1) % self.messages.len();
        self.streams.push_back(Some(Stream { begun, message: Vec::new(), allowed: false }));
        self.waiting += 1;
    }

    /// Handles the complete frames. Returns their length in bytes.
    fn take(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let now = Instant::now();
        let mut taken = 0;
        while let Some((head, rest)) = bytes[taken..].split_first_chunk::<HEAD>() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
            let Some(payload) = rest.get(..length) else { break };
            taken += HEAD + length;
            match head[3] {
                DATA => self.data(stream, head[4], payload, now),
                HEADERS if head[4] & END_STREAM != 0 => self.end(stream, now),
                RST_STREAM => self.reset(stream),
                SETTINGS if head[4] & ACK == 0 => self.settings(payload),
                PING if head[4] & ACK == 0 => {
                    frame(&mut self.out, PING, ACK, 0, payload.len());
                    self.out.extend(payload);
                }
                WINDOW_UPDATE if stream == 0 => self.credit += i64::from(word(payload)),
                GOAWAY => {
                    let why = String::from_utf8_lossy(payload.get(8..).unwrap_or_default());
                    return Err(format!("the server sent GOAWAY: `{why}`").into());
                }
                _ => {}
            }
        }
        Ok(taken)
    }

    fn settings(&mut self, payload: &[u8]) {
        for setting in payload.chunks_exact(6) {
            let value = word(&setting[2..]);
            if u16::from_be_bytes([setting[0], setting[1]]) == MAX_CONCURRENT_STREAMS {
                self.most = self.most.min(value as usize);
            }
        }
        frame(&mut self.out, SETTINGS, ACK, 0, 0);
    }

    fn data(&mut self, id: u32, flags: u8, payload: &[u8], now: Instant) {
        self.received += payload.len() as u32;
        if self.received > RECEIVE_WINDOW / 2 {
            frame(&mut self.out, WINDOW_UPDATE, 0, 0, 4);
            self.out.extend(self.received.to_be_bytes());
            self.received = 0;
        }
        let allowed = self.call.allowed;
        if let Some(stream) = self.stream(id).and_then(Option::as_mut)
            && flags & PADDED == 0
        {
            if stream.message.is_empty() && whole(payload) {
                stream.allowed = allowed(&payload[5..]);
            } else {
                stream.message.extend(payload);
                if whole(&stream.message) {
                    stream.allowed = allowed(&stream.message[5..]);
                }
            }
        }
        if flags & END_STREAM != 0 {
            self.end(id, now);
        }
    }

    fn end(&mut self, id: u32, now: Instant) {
        if let Some(stream) = self.stream(id).and_then(Option::take) {
            self.waiting -= 1;
            self.tally.note(&self.window, stream.begun, now, stream.allowed);
        }
        while let Some(None) = self.streams.front() {
            self.streams.pop_front();
            self.oldest += 2;
        }
    }

    fn reset(&mut self, id: u32) {
        // After a response, a reset only means that the server does not need the rest of a request.
        if self.stream(id).and_then(Option::take).is_some() {
            self.waiting -= 1;
            self.tally.failed += 1;
        }
    }

    fn stream(&mut self, id: u32) -> Option<&mut Option<Stream>> {
        self.streams.get_mut((id.checked_sub(self.oldest)? / 2) as usize)
    }
}

/// Returns a body as a gRPC message.
fn message(body: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut message = vec![0];
    message.extend(u32::try_from(body.len())?.to_be_bytes());
    message.extend(body);
    Ok(message)
}

/// Returns whether a gRPC message (a flag byte, four bytes of length) is complete.
fn whole(bytes: &[u8]) -> bool {
    bytes.split_first_chunk::<5>().is_some_and(|(&[_, length @ ..], message)| {
        message.len() == u32::from_be_bytes(length) as usize
    })
}

fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |&bytes| u32::from_be_bytes(bytes))
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, length: usize) {
    out.extend(&(length as u32).to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
}

/// Indexes of the static table (RFC 7541, appendix A).
const METHOD_POST: u8 = 0x80 | 3;
const SCHEME_HTTP: u8 = 0x80 | 6;
const AUTHORITY: u8 = 1;
const PATH: u8 = 4;
const AUTHORIZATION: u8 = 23;
const CONTENT_TYPE: u8 = 31;
/// The index of the dynamic table's newest entry.
const NEWEST: u8 = 62;

fn header_blocks(call: &Call) -> [Vec<u8>; 2] {
    let mut first = vec![METHOD_POST, SCHEME_HTTP];
    let mut named = 0;
    let mut index = |name: u8, value: &str| {
        // A literal with incremental indexing, with the name from the table.
        first.push(0x40 | name);
        if name == 0 {
            text(&mut first, "te");
        }
        text(&mut first, value);
        named += 1;
    };
    index(AUTHORITY, &call.address.to_string());
    index(PATH, &call.path);
    index(CONTENT_TYPE, "application/grpc");
    if let Some(credential) = &call.credential {
        index(AUTHORIZATION, credential);
    }
    index(0, "trailers");
    let mut later = vec![METHOD_POST, SCHEME_HTTP];
    later.extend((0..named).rev().map(|age| 0x80 | (NEWEST + age)));
    [first, later]
}

/// Writes a string literal without Huffman coding.
fn text(out: &mut Vec<u8>, text: &str) {
    let mut length = text.len();
    if length < 127 {
        out.push(length as u8);
    } else {
        out.push(127);
        length -= 127;
        while length > 127 {
            out.push(0x80 | (length & 127) as u8);
            length >>= 7;
        }
        out.push(length as u8);
    }
    out.extend(text.as_bytes());
}
